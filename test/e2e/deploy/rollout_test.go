// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

const (
	// callers evaluate all the time while programs are replaced.
	callers = 20
	// pause is the time between two evaluations of a caller.
	pause = 500 * time.Millisecond
)

// TestRolloutLosesNothing replaces the pods of Deployments again and again under load: it upgrades
// and rolls back one service at a time, so that each combination of their versions occurs, and
// restarts each. An evaluation that takes longer than most restarts begins before them, in a pod
// that is deleted. Half of the other evaluations run in pods, whose wrapper server changes with the
// program that manages them.
func TestRolloutLosesNothing(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	tests := []struct {
		mode        string
		deployments []string
		rounds      int // how often each rollout happens
	}{
		{"microservices", []string{"gateway", "pod-manager", "image-resolver"}, 1},
		{"function-runner", []string{"function-runner"}, 3},
	}
	for _, tc := range tests {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			at := aside(tc.mode)
			objects := s.OnTheBed(t, suite.Build(t, filepath.Join(root, "deploy/base", tc.mode)))
			at.install(t, objects)
			for _, image := range []string{setNamespace, inPod(t)} {
				at.evaluates(t, image)
			}
			var rollouts []func()
			met := map[string]bool{}
			for _, next := range walk(len(tc.deployments)) {
				rollouts = append(rollouts, func() {
					at.change(t, next.version, objects, tc.deployments[next.service])
					met[next.together] = true
				})
			}
			for _, name := range tc.deployments {
				rollouts = append(rollouts, func() { at.restart(t, name) })
			}
			var outlasts errgroup.Group
			sleep, caller := s.Registry(t, "open").Host+"/test/sleep:v1", at.caller(t)
			outlasts.Go(func() error { return at.outlastsItsPod(t.Context(), caller, sleep) })
			rollouts = slices.Repeat(rollouts, tc.rounds)
			evaluations, err := at.underLoad(t, func() {
				for _, rollout := range rollouts {
					rollout()
				}
			})
			t.Logf("%d evaluations, %d rollouts, combinations of versions %v", evaluations, len(rollouts),
				slices.Sorted(maps.Keys(met)))
			if err := outlasts.Wait(); err != nil {
				t.Errorf("an evaluation whose pod was deleted: %v", err)
			}
			if err != nil {
				t.Errorf("a caller failed: %v", err)
			}
			if want := 1 << len(tc.deployments); len(met) != want {
				t.Errorf("services met in %d combinations of versions, want %d", len(met), want)
			}
		})
	}
}

// step changes one service to a version.
type step struct {
	service  int
	version  suite.Version
	together string // the versions of all services after it
}

// walk goes through all combinations of two versions of some services, one change at a time (a Gray
// code), starting and ending with all of them current.
func walk(services int) []step {
	versions := slices.Repeat([]suite.Version{suite.Current}, services)
	other := map[suite.Version]suite.Version{suite.Current: suite.Previous, suite.Previous: suite.Current}
	var steps []step
	for i := 1; i <= 1<<services; i++ {
		// The first service changes in every second step, the next one in every fourth, and so on.
		service := min(bits.TrailingZeros(uint(i)), services-1)
		versions[service] = other[versions[service]]
		steps = append(steps, step{service, versions[service], fmt.Sprint(versions)})
	}
	return steps
}

// underLoad runs a task while callers evaluate, and returns the number of evaluations, and the
// first error.
func (p place) underLoad(t *testing.T, do func()) (int64, error) {
	t.Helper()
	images := []string{setNamespace, inPod(t)}
	conns := make([]*grpc.ClientConn, callers)
	for number := range conns {
		conns[number] = p.caller(t)
	}
	return suite.UnderLoad(t.Context(), callers, pause, func(ctx context.Context, number int) error {
		return suite.SetNamespace(ctx, conns[number], images[number%len(images)])
	}, do)
}

// restart replaces all pods of a Deployment, as `kubectl rollout restart` does.
func (p place) restart(t *testing.T, name string) {
	t.Helper()
	ctx := suite.Context(t)
	patch := fmt.Appendf(nil,
		`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
		time.Now().Format(time.RFC3339Nano))
	if _, err := s.Client.AppsV1().Deployments(p.system).Patch(ctx, name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitRollout(ctx, t, p.system, name)
}

// change sets the version of a Deployment of the manifests.
func (p place) change(t *testing.T, version suite.Version, objects []*unstructured.Unstructured, name string) {
	t.Helper()
	for _, o := range p.objects(t, version, objects) {
		if o.GetKind() == "Deployment" && o.GetName() == name {
			s.Install(suite.Context(t), t, o)
		}
	}
}
