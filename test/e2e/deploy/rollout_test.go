//go:build e2e

package deploy_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// callers evaluate all the time while programs are restarted.
const callers = 20

// TestRestartLosesNothing restarts each Deployment under load.
func TestRestartLosesNothing(t *testing.T) {
	for mode, dir := range map[string]string{"microservices": "deploy/base/microservices", "function-runner": "deploy/base/function-runner"} {
		t.Run(mode, func(t *testing.T) {
			objects := built(t, filepath.Join(root, dir))
			install(t, objects)
			evaluates(t)
			evaluations, err := underLoad(t, func() {
				for _, o := range objects {
					if o.GetKind() == "Deployment" {
						restart(t, o.GetName())
					}
				}
			})
			t.Logf("%d evaluations", evaluations)
			if err != nil {
				t.Errorf("a caller failed: %v", err)
			}
		})
	}
}

// underLoad has callers evaluate while something is done and a little longer, and
// returns how often they did, and the first error.
func underLoad(t *testing.T, do func()) (int64, error) {
	t.Helper()
	var evaluations atomic.Int64
	done := make(chan struct{})
	var load errgroup.Group
	for range callers {
		client := caller(t)
		load.Go(func() error {
			for {
				select {
				case <-done:
					return nil
				default:
				}
				if _, err := evaluate(t.Context(), client, setNamespace); err != nil {
					return fmt.Errorf("after %d evaluations: %w", evaluations.Load(), err)
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
func restart(t *testing.T, name string) {
	t.Helper()
	ctx := suite.Context(t)
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
	if _, err := s.Client.AppsV1().Deployments(system).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitRollout(ctx, t, system, name)
}
