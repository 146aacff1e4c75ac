//go:build e2e

package deploy_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

const (
	// callers evaluate all the time while programs are restarted.
	callers = 20
	// loadFor is for how long they do at least.
	loadFor = 2 * time.Minute
	// pause is the time that a caller needs for other things.
	pause = 250 * time.Millisecond
)

// TestRestartLosesNothing restarts each Deployment again and again under load, to and
// fro. Half of the evaluations are in pods.
func TestRestartLosesNothing(t *testing.T) {
	t.Parallel() // with whatever else has namespaces of its own
	tests := []struct {
		mode        string
		deployments []string
	}{
		{"microservices", []string{"gateway", "pod-manager", "image-resolver"}},
		{"function-runner", []string{"function-runner"}},
	}
	for _, tc := range tests {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			at := aside(tc.mode)
			at.install(t, onTheBed(t, suite.Build(t, filepath.Join(root, "deploy/base", tc.mode))))
			for _, image := range []string{setNamespace, inPod(t)} {
				at.evaluates(t, image)
			}
			restarts := 0
			evaluations, err := at.underLoad(t, func() {
				for begin := time.Now(); time.Since(begin) < loadFor; restarts++ {
					if restarts%len(tc.deployments) == 0 && restarts > 0 {
						slices.Reverse(tc.deployments)
					}
					at.restart(t, tc.deployments[restarts%len(tc.deployments)])
				}
			})
			t.Logf("%d evaluations, %d restarts", evaluations, restarts)
			if err != nil {
				t.Errorf("a caller failed: %v", err)
			}
			if restarts < len(tc.deployments) {
				t.Errorf("not every Deployment was restarted: %d", restarts)
			}
		})
	}
}

// underLoad has callers evaluate while something is done, and returns how often they
// did, and the first error.
func (p place) underLoad(t *testing.T, do func()) (int64, error) {
	t.Helper()
	var evaluations atomic.Int64
	done := make(chan struct{})
	var load errgroup.Group
	images := []string{setNamespace, inPod(t)}
	for number := range callers {
		conn, image := p.caller(t), images[number%len(images)]
		load.Go(func() error {
			for {
				select {
				case <-done:
					return nil
				case <-time.After(pause):
				}
				if err := suite.SetNamespace(t.Context(), conn, image); err != nil {
					return fmt.Errorf("%s, after %d evaluations: %w", image, evaluations.Load(), err)
				}
				evaluations.Add(1)
			}
		})
	}
	do()
	close(done)
	err := load.Wait()
	return evaluations.Load(), err
}

// restart replaces all pods of a Deployment, as `kubectl rollout restart` does.
func (p place) restart(t *testing.T, name string) {
	t.Helper()
	ctx := suite.Context(t)
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if _, err := s.Client.AppsV1().Deployments(p.system).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitRollout(ctx, t, p.system, name)
}
