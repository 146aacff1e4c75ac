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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

const (
	// callers evaluate all the time while programs are replaced.
	callers = 20
	// loadFor is for how long they do at least.
	loadFor = 2 * time.Minute
	// pause is the time that a caller needs for other things.
	pause = 500 * time.Millisecond
)

// TestRolloutLosesNothing replaces the pods of each Deployment again and again under
// load: by the version before, by this one, and by the same once more. Each service
// meets the others in both versions. Half of the evaluations are in pods, whose wrapper
// server changes with who manages them.
func TestRolloutLosesNothing(t *testing.T) {
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
			objects := onTheBed(t, suite.Build(t, filepath.Join(root, "deploy/base", tc.mode)))
			at.install(t, objects)
			for _, image := range []string{setNamespace, inPod(t)} {
				at.evaluates(t, image)
			}
			rounds := []func(name string){
				func(name string) { at.change(t, suite.Previous, objects, name) },
				func(name string) { at.change(t, suite.Current, objects, name) },
				func(name string) { at.restart(t, name) },
			}
			rollouts := 0
			evaluations, err := at.underLoad(t, func() {
				atLeast := len(rounds) * len(tc.deployments) // however long that takes
				for begin := time.Now(); time.Since(begin) < loadFor || rollouts < atLeast; rollouts++ {
					round, turn := rollouts/len(tc.deployments), rollouts%len(tc.deployments)
					if turn == 0 && round > 0 {
						slices.Reverse(tc.deployments)
					}
					rounds[round%len(rounds)](tc.deployments[turn])
				}
			})
			t.Logf("%d evaluations, %d rollouts", evaluations, rollouts)
			if err != nil {
				t.Errorf("a caller failed: %v", err)
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

// change has a Deployment of the manifests run a version.
func (p place) change(t *testing.T, version suite.Version, objects []*unstructured.Unstructured, name string) {
	t.Helper()
	for _, o := range p.objects(t, version, objects) {
		if o.GetKind() == "Deployment" && o.GetName() == name {
			s.Install(suite.Context(t), t, o)
		}
	}
}
