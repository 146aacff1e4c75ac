// SPDX-License-Identifier: Apache-2.0

// Package caller implements well-behaved callers, which error messages call "other callers". During an attack, they
// measure whether the program still serves them.
package caller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
)

// Role is the first argument of the process that runs the well-behaved callers. The command attack starts this process
// from its own executable.
const Role = "callers"

// The load of the well-behaved callers. Each caller has its own connection and calls at fixed times. It does not wait
// for the answers to earlier calls. Otherwise, slow answers would reduce the number of calls.
const (
	callers     = 4
	interval    = 100 * time.Millisecond // pause between two calls of a caller
	outstanding = 100                    // maximum number of unanswered calls of a caller
	timeout     = 10 * time.Second
)

// Resolve is a prefix for the argument image of [Run], which makes callers resolve tags. In this case, image is the
// prefix and a repository, and callers do not evaluate a function. Each call resolves a new tag of the repository, so
// that the image-resolver cannot use its cache.
const Resolve = "resolve="

// Run calls the program at address until ctx ends, and waits for the answers. It writes the duration and result of
// each call to w, for [Samples.Read]. If image is empty, it sends health checks.
func Run(ctx context.Context, address, image string, w io.Writer) error {
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range callers {
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		running.Go(func() {
			callOnSchedule(ctx, i, func(start time.Time, n int) {
				err := callAndCheck(ctx, conn, image, fmt.Sprintf("caller-%d-%d", i, n))
				mu.Lock()
				defer mu.Unlock()
				_ = Sample{Start: start, Took: time.Since(start), Failed: err}.write(w)
			})
		})
	}
	running.Wait()
	return nil
}

// callOnSchedule starts calls at fixed times until ctx ends, and waits for the answers. It limits the number of
// unanswered calls to outstanding. If this limit is reached, the next call starts late.
func callOnSchedule(ctx context.Context, caller int, call func(start time.Time, n int)) {
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, outstanding)
	next := time.Now().Add(time.Duration(caller) * interval / callers)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
		start := next
		next = next.Add(interval)
		select {
		case free <- struct{}{}:
			running.Go(func() {
				call(start, n)
				<-free
			})
		case <-ctx.Done():
			return
		}
	}
}

// callAndCheck makes a call and checks the answer. The request contains the marker, which is different in each call.
// The check can therefore detect an answer to a different call.
func callAndCheck(ctx context.Context, conn *grpc.ClientConn, image, marker string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if image == "" {
		_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	if repository, ok := strings.CutPrefix(image, Resolve); ok {
		return resolveImage(ctx, conn, repository+":"+marker)
	}
	list := "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n" +
		"items:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: " + marker + "\n"
	answer, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx,
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(list)})
	if err == nil && string(answer.GetResourceList()) != list {
		return errors.New("wrong output")
	}
	return err
}

func resolveImage(ctx context.Context, conn *grpc.ClientConn, image string) error {
	var answer imageresolverv1.ResolveImageResponse
	err := conn.Invoke(ctx, imageresolverv1connect.ImageResolverServiceResolveImageProcedure,
		&imageresolverv1.ResolveImageRequest{Image: image}, &answer)
	if err == nil && answer.GetDigest() == "" {
		return errors.New("no digest")
	}
	return err
}
