// SPDX-License-Identifier: Apache-2.0

// Package attacks contains the attacks of hostile and careless callers and functions, each in a file of its own.
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

// Attack is an action of a hostile or careless caller or function.
type Attack struct {
	Name     string
	Programs []string
	// Short are the programs that the short form attacks.
	Short []string
	// Run attacks, and returns an error if an expectation of this attack fails. Every attack is also checked by the
	// harness: the program must continue, free its memory and serve other callers. Run returns when ctx ends at the
	// latest, and closes its connections.
	Run func(ctx context.Context, target *Target) error
}

// Target is the program under attack and the bounds of the attack.
type Target struct {
	*system.System
	// Brief is true if the attack must be short.
	Brief bool
}

// chooseByTime returns brief for a short attack, else long.
func chooseByTime[T any](t *Target, brief, long T) T {
	if t.Brief {
		return brief
	}
	return long
}

// Groups of programs.
var (
	every = []string{
		system.FunctionRunner, system.Gateway, system.WrapperServer, system.PodManager, system.ImageResolver,
	}
	evaluators = []string{system.FunctionRunner, system.Gateway, system.WrapperServer}
	runners    = []string{system.FunctionRunner, system.WrapperServer} // of processes
	runner     = []string{system.FunctionRunner}
	gateway    = []string{system.Gateway}
)

// All are all attacks.
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

// Paths of methods.
const (
	evaluatePath   = "/evaluator.FunctionEvaluator/EvaluateFunction"
	healthPath     = "/grpc.health.v1.Health/Check"
	historyPath    = "/functionrunner.gateway.v1.StatusService/ListEvaluations"
	reflectionPath = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
)

// List returns a resource list that selects the function's behaviour, with the given bytes of padding.
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

// connectTo returns a gRPC client with a connection of its own, which the caller closes.
func (t *Target) connectTo() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+t.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(wire.Dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
}

// evaluate has the hostile function evaluated once.
func (t *Target) evaluate(ctx context.Context, image string, list []byte) (*evaluator.EvaluateFunctionResponse, error) {
	conn, err := t.connectTo()
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx,
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: list})
}

// retryPause is the pause before a rejected caller retries.
const retryPause = 100 * time.Millisecond

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// runAll does n things at once, and returns the first error.
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
