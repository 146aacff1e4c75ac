// SPDX-License-Identifier: Apache-2.0

// Package attacks contains attacks on this repository's programs by hostile or careless callers, functions, pods
// and registries.
package attacks

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// Attack describes an attack and the programs to attack.
type Attack struct {
	Name     string
	Programs []string
	// Short lists fewer programs, to save time in tests with the option -short.
	Short []string
	// PeakLimit is the maximum memory usage of the program in bytes. If it is zero, only the memory limit applies.
	PeakLimit int64
	// Run performs the attack, and returns an error if the program responds wrongly. It must close its connections and
	// return when ctx ends. The caller of Run checks that the program continues to run, frees its memory and serves
	// well-behaved callers.
	Run func(ctx context.Context, target *Target) error
}

// Target is the attacked program, together with options that apply to all attacks.
type Target struct {
	*system.System
	// Brief is true in tests with the option -short. Attacks must then take only a few seconds.
	Brief bool
}

// chooseByTime returns brief in tests with the option -short, and long in all other tests.
func chooseByTime[T any](t *Target, brief, long T) T {
	if t.Brief {
		return brief
	}
	return long
}

// Lists of attacked programs that several attacks use.
var (
	every = []string{
		system.FunctionRunner, system.Gateway, system.WrapperServer, system.PodManager, system.ImageResolver,
	}
	evaluators = []string{system.FunctionRunner, system.Gateway, system.WrapperServer}
	runners    = []string{system.FunctionRunner, system.WrapperServer} // programs that start functions as processes
	runner     = []string{system.FunctionRunner}
	gateway    = []string{system.Gateway}
)

// All returns all attacks.
func All() []Attack {
	return []Attack{
		healthBomb, reflectionBomb, manyBombs, unknownFields,
		slowUploads, manyUploads,
		unreadAnswers, unreadReflection, unreadQueries, manyStreams, manyConnections, malformed,
		tagsInput, tagsOutput, oddLists,
		hanging, largeHanging, orphans,
		lookAround, stealMemory, readToken, readDockerConfig, readFunction, fillTemporary, stopServer, limitServer,
		hide, persist, loopback, confinement, eatMemory,
		hostilePod, smallFrames, inventedImages, innerRegistries, loggedSecret,
		silentRegistries, headerRegistries, slowRegistries,
		chaos,
	}
}

// Paths of the gRPC methods that attacks call.
const (
	evaluatePath   = "/evaluator.FunctionEvaluator/EvaluateFunction"
	healthPath     = "/grpc.health.v1.Health/Check"
	historyPath    = "/functionrunner.gateway.v1.StatusService/ListEvaluations"
	reflectionPath = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
)

// List returns a resource list that selects a behaviour of the hostile function, such as "hang". padding is the
// number of bytes to add to the list.
func List(do, arg string, padding int) []byte {
	return fmt.Appendf(nil, `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items: []
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: attack
  data:
    do: %q
    arg: %q
    padding: %q
`, do, arg, strings.Repeat("x", padding))
}

// connectTo returns a gRPC client of the attacked program, with its own connection. The caller must close it.
func (t *Target) connectTo() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+t.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(wire.Dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
}

// evaluate sends a single evaluation to the attacked program, on a new connection.
func (t *Target) evaluate(ctx context.Context, image string, list []byte) (*evaluator.EvaluateFunctionResponse, error) {
	conn, err := t.connectTo()
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx,
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: list})
}

// retryPause is the delay before callers retry a rejected evaluation.
const retryPause = 100 * time.Millisecond

// runAll calls the function do n times, concurrently. It waits for all calls and returns the first error.
func runAll(n int, do func(i int) error) error {
	var once sync.Once
	var first error
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			if err := do(i); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	running.Wait()
	return first
}
