// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
)

// configs returns FunctionConfigs for the tag v1 of example.com/fn: its podExecutor has these
// fields, and the annotation these settings.
func configs(fields map[string]any, settings string) functionconfig.Set {
	pod := map[string]any{"tags": []any{"v1"}}
	for name, value := range fields {
		pod[name] = value
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"image": "fn", "prefixes": []any{"example.com"}, "podExecutor": pod,
	}}}
	u.SetName("fn")
	u.SetAnnotations(map[string]string{functionconfig.SettingsAnnotation: settings})
	return *functionconfig.Compile([]*functionconfig.Config{functionconfig.Decode(u, "")}, "")
}

// TestAFunctionConfigReachesPods has a line of the pod cache configuration and then a
// FunctionConfig for the same image.
func TestAFunctionConfigReachesPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const image = "example.com/fn:v1"
		c := &cluster{}
		m := start(t, c, resolver{})
		m.Configure(func(s *manager.Settings) {
			s.Functions = map[string]cacheconfig.Entry{image: {Image: image, MaxConcurrency: 2, MaxEvaluationTime: time.Minute}}
		})
		evaluate := func(pods, concurrency int, account, reason string) {
			t.Helper()
			held, err := m.Lease(t.Context(), open(image), quietly)
			if err != nil {
				t.Fatal(err)
			}
			held.Finish(lease.Done, "")
			<-time.After(5 * time.Second) // until a new pod is ready
			if len(c.requests) != pods {
				t.Fatalf("%d pods were created, want %d: %s", len(c.requests), pods, reason)
			}
			last, own := c.requests[pods-1], ""
			if last.Overrides != nil {
				own = last.Overrides.ServiceAccount
			}
			if last.Concurrency != concurrency || own != account {
				t.Errorf("the pod has the concurrency %d and the account %q: %s", last.Concurrency, own, reason)
			}
		}
		put := func(s functionconfig.Set) { m.Configure(func(all *manager.Settings) { all.Configs = s }) }
		evaluate(1, 2, "", "the file's line counts")
		overrides := map[string]any{"serviceAccountName": "functions"}
		put(configs(map[string]any{"templateOverrides": overrides}, "maxConcurrency: 3"))
		evaluate(2, 3, "functions", "the FunctionConfig wins, and makes the pod outdated")
		put(configs(map[string]any{"timeToLive": "1h", "templateOverrides": overrides}, "maxConcurrency: 3"))
		evaluate(2, 3, "functions", "a time to live shapes no pod")
		put(functionconfig.Set{})
		evaluate(3, 2, "", "without it, the file's line counts again")
	})
}

// TestAFunctionConfigThatGoesWhileItsFunctionRuns deletes a FunctionConfig while one evaluation runs:
// that one ends on its pod, and the next one has a pod without the FunctionConfig's settings.
func TestAFunctionConfigThatGoesWhileItsFunctionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		m := start(t, c, resolver{})
		put := func(s functionconfig.Set) { m.Configure(func(all *manager.Settings) { all.Configs = s }) }
		evaluate := func() lease.Lease {
			t.Helper()
			held, err := m.Lease(t.Context(), open("example.com/fn:v1"), quietly)
			if err != nil {
				t.Fatal(err)
			}
			return held
		}
		put(configs(nil, "maxConcurrency: 3"))
		running := evaluate()
		put(functionconfig.Set{})
		next := evaluate()
		if len(c.requests) != 2 || c.requests[1].Concurrency == 3 {
			t.Fatalf("%d pods were created, want a second one without the settings: %+v", len(c.requests), c.requests)
		}
		if len(c.deleted) > 0 {
			t.Error("the pod of the evaluation that runs is deleted")
		}
		running.Finish(lease.Done, "")
		next.Finish(lease.Done, "")
		<-time.After(time.Minute)
		synctest.Wait()
		if len(c.deleted) != 1 {
			t.Errorf("%d pods are deleted, want the one of the deleted FunctionConfig", len(c.deleted))
		}
	})
}

// tags is a registry's tags of each image.
type tags []string

func (r tags) ResolveImage(
	_ context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	reference := req.GetImage()
	if constraint, err := tagconstraint.Parse(req.GetTagConstraint()); !constraint.IsZero() || err != nil {
		tag, ok := constraint.Highest(r)
		if !ok {
			return nil, fault.New(fault.Precondition, "no tag satisfies %q", req.GetTagConstraint())
		}
		reference += ":" + tag
	}
	return &imageresolverv1.ResolveImageResponse{Reference: reference, Digest: "sha256:01"}, nil
}

// TestMinPodsOfAVersionConstraint has the newest tag that satisfies a FunctionConfig's tag get the pod.
func TestMinPodsOfAVersionConstraint(t *testing.T) {
	for tag, want := range map[string]string{
		"~0.4": "v0.4.10", "~v0.4.1": "v0.4.10", ">=0.4.1 <0.4.10": "v0.4.9", ">0.4": "v0.5.0", "v0.4": "v0.4", "~0.6": "",
	} {
		t.Run(tag, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := start(t, &cluster{}, tags{"v0.4", "v0.4.10", "v0.4.9", "v0.5.0", "latest"})
				m.Configure(func(s *manager.Settings) {
					s.MinPods = 1
					s.Configs = configs(map[string]any{"tags": []any{tag}}, "minPods: 1")
				})
				<-time.After(5 * time.Minute)
				if want != "" {
					want = "example.com/fn:" + want + "@sha256:01"
				}
				if got := ready(t, m); got != want {
					t.Errorf("ready are %q, want %q", got, want)
				}
			})
		})
	}
}

func TestMinPodsOfAFunctionConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, &cluster{}, resolver{})
		put := func(minPods int, s functionconfig.Set) string {
			m.Configure(func(all *manager.Settings) {
				all.MinPods = minPods
				all.Configs = s
			})
			<-time.After(5 * time.Minute)
			synctest.Wait()
			return ready(t, m)
		}
		const pod = "example.com/fn:v1@sha256:01"
		three := map[string]any{"maxParallelExecutions": int64(3)}
		if got := put(1, configs(three, "minPods: 2")); got != pod+" "+pod {
			t.Errorf("ready are %q, want two pods", got)
		}
		if got := put(1, configs(three, "minPods: 3")); got != pod+" "+pod+" "+pod {
			t.Errorf("ready are %q, want three pods", got)
		}
		<-time.After(2 * time.Hour)
		if got := put(0, configs(three, "minPods: 3")); got == "" {
			t.Errorf("ready are %q: they expire by and by", got)
		}
		<-time.After(2 * time.Hour)
		if got := ready(t, m); got != "" {
			t.Errorf("ready are %q, although the warm-up is off", got)
		}
	})
}
