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
	// callTimeout is a caller's deadline. It leaves no time to repeat a long evaluation.
	callTimeout = time.Minute
)

// outlastsItsPod evaluates a function that takes long, whose pod is deleted as soon as it runs, and
// whose gateway may be replaced in the meantime. All of them finish what they have begun.
func (p place) outlastsItsPod(ctx context.Context, conn *grpc.ClientConn, image string) error {
	// The deadline is for the evaluation, not for the start of its pod on a busy machine.
	if err := suite.Sleep(ctx, conn, image, 0); err != nil {
		return fmt.Errorf("%s, to have a pod: %w", image, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- suite.Sleep(ctx, conn, image, takesLong) }()
	if err := p.deleteBusyPod(ctx, conn, image); err != nil {
		return fmt.Errorf("delete the pod of %s: %w", image, err)
	}
	if err := <-done; err != nil {
		return fmt.Errorf("%s, for %v: %w", image, takesLong, err)
	}
	return nil
}

// deleteBusyPod waits until a function is evaluated in a pod, and deletes the pod.
func (p place) deleteBusyPod(ctx context.Context, conn *grpc.ClientConn, image string) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		// The called replica may be about to be replaced.
		resp, err := podmanagerv1.NewPodManagerServiceClient(conn).ListPools(ctx, &podmanagerv1.ListPoolsRequest{})
		for _, pool := range resp.GetPools() {
			busy := slices.IndexFunc(pool.GetPods(), func(pod *podmanagerv1.Pod) bool { return pod.GetActive() > 0 })
			if pool.GetKey().GetReference() == image && busy >= 0 {
				pods := s.Client.CoreV1().Pods(p.functions)
				return pods.Delete(ctx, pool.GetPods()[busy].GetName(), metav1.DeleteOptions{})
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("none is busy: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}
