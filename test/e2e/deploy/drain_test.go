// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

const (
	// takesLong is longer than the default grace period of pods.
	takesLong = 35 * time.Second
	// callTimeout is a caller's deadline from the begin of the evaluation. It leaves no time to repeat a long one.
	callTimeout = time.Minute
)

// outlastsItsPod evaluates a function that takes long, whose pod is deleted as soon as it runs, and
// whose gateway may be replaced in the meantime. All of them finish what they have begun.
func (p place) outlastsItsPod(ctx context.Context, conn *grpc.ClientConn, image string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*suite.ConditionTimeout)
	defer cancel()
	// The deadline is for the evaluation, not for the start of its pod on a busy machine.
	if err := suite.Sleep(ctx, conn, image, 0); err != nil {
		return fmt.Errorf("%s, to have a pod: %w", image, err)
	}
	if _, err := awaitUse(ctx, conn, image, false); err != nil {
		return fmt.Errorf("await the end of the first evaluation of %s: %w", image, err)
	}
	done := make(chan error, 1)
	go func() { done <- suite.Sleep(ctx, conn, image, takesLong) }()
	pod, err := awaitUse(ctx, conn, image, true)
	defer time.AfterFunc(callTimeout, cancel).Stop()
	if err == nil {
		err = s.Client.CoreV1().Pods(p.functions).Delete(ctx, pod, metav1.DeleteOptions{})
	}
	if err != nil {
		cancel()
		return fmt.Errorf("delete the pod of %s: %w", image, errors.Join(err, <-done))
	}
	if err := <-done; err != nil {
		return fmt.Errorf("%s, for %v: %w", image, takesLong, err)
	}
	return nil
}

// awaitUse waits until a pod of a function evaluates, and returns the pod's name. If busy is false, it waits until none
// of the function's pods evaluates.
func awaitUse(ctx context.Context, conn *grpc.ClientConn, image string, busy bool) (name string, err error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		// The called replica may be about to be replaced.
		resp, err := podmanagerv1.NewPodManagerServiceClient(conn).ListPools(ctx, &podmanagerv1.ListPoolsRequest{})
		var pods []*podmanagerv1.Pod
		for _, pool := range resp.GetPools() {
			if pool.GetKey().GetReference() == image {
				pods = append(pods, pool.GetPods()...)
			}
		}
		used := slices.IndexFunc(pods, func(pod *podmanagerv1.Pod) bool { return pod.GetActive() > 0 })
		switch {
		case busy && used >= 0:
			return pods[used].GetName(), nil
		case !busy && used < 0 && err == nil:
			return "", nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the pods are %v: %w", pods, errors.Join(context.Cause(ctx), err))
		}
	}
}
