// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
)

// registry counts lookups. Images called silent take half a minute to fail, wrong ones
// fail at once.
type registry struct {
	mu         sync.Mutex
	digest     string
	lookups    map[string][]time.Time
	busy, most int
}

func (r *registry) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	image := req.GetImage()
	r.count(image, 1)
	defer r.count(image, -1)
	if strings.HasPrefix(image, "silent") {
		select {
		case <-time.After(30 * time.Second):
		case <-ctx.Done():
		}
		return nil, fault.New(fault.Unavailable, "no answer")
	}
	if strings.HasPrefix(image, "wrong") {
		return nil, fault.New(fault.Precondition, "no such image")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &imageresolverv1.ResolveImageResponse{Reference: image, Digest: "sha256:" + r.digest}, nil
}

func (r *registry) count(image string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy += n; n > 0 {
		r.lookups[image] = append(r.lookups[image], time.Now())
		r.most = max(r.most, r.busy)
	}
}

// list puts images into the pod cache configuration.
func list(m *manager.Manager, minPods int, images ...string) {
	m.Configure(func(s *manager.Settings) {
		s.MinPods = minPods
		s.Functions = make(map[string]cacheconfig.Entry)
		for _, image := range images {
			s.Functions[image] = cacheconfig.Entry{Image: image}
		}
	})
}

// ready returns the functions with a ready pod, in order.
func ready(t *testing.T, m *manager.Manager) string {
	t.Helper()
	pools, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for _, p := range pools.GetPools() {
		for _, pod := range p.GetPods() {
			if pod.GetState() == podmanagerv1.Pod_STATE_READY {
				functions = append(functions, p.GetKey().GetReference()+"@"+p.GetKey().GetDigest())
			}
		}
	}
	return strings.Join(functions, " ")
}

// TestMinimumOfAnEntry holds that an entry's own number of pods wins, and that the surplus ends with its
// time to live when the number is lowered.
func TestMinimumOfAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{digest: "1", lookups: make(map[string][]time.Time)}
		m := start(t, &cluster{}, r)
		for _, step := range []struct {
			minPods int
			want    string
		}{
			{3, "fn:v1@sha256:1 fn:v1@sha256:1 fn:v1@sha256:1"}, {1, "fn:v1@sha256:1"}, {0, ""},
		} {
			m.Configure(func(s *manager.Settings) {
				s.MinPods = 1
				s.Defaults.MaxPods = 5
				s.Functions = map[string]cacheconfig.Entry{"fn:v1": {Image: "fn:v1", MinPods: &step.minPods}}
			})
			<-time.After(2 * time.Hour)
			if got := ready(t, m); got != step.want {
				t.Errorf("with a minimum of %d there are ready pods of %q, want %q", step.minPods, got, step.want)
			}
		}
	})
}

func TestMinimum(t *testing.T) {
	tests := map[string]struct {
		reason string
		minPod int
		images []string // first
		then   []string // and an hour later
		moved  bool     // and tags have moved
		want   string   // functions with a ready pod, two hours later
	}{
		"listed": {
			reason: "its pod outlives its time to live",
			minPod: 1, images: []string{"fn:v1"}, then: []string{"fn:v1"}, want: "fn:v1@sha256:1",
		},
		"listed later": {reason: "the file is followed", minPod: 1, then: []string{"fn:v1"}, want: "fn:v1@sha256:1"},
		"listed no more": {
			reason: "its pod ends with its time to live",
			minPod: 1, images: []string{"fn:v1", "other:v1"}, then: []string{"other:v1"}, want: "other:v1@sha256:1",
		},
		"moved": {
			reason: "a tag that moves has a pod of its new digest, and the former one goes",
			minPod: 1, images: []string{"fn:v1"}, then: []string{"fn:v1"}, moved: true, want: "fn:v1@sha256:2",
		},
		"off": {reason: "FNR_WARM_UP is false", images: []string{"fn:v1"}, then: []string{"fn:v1"}},
		"beside others": {
			reason: "an image that is wrong holds up none",
			minPod: 1, images: []string{"wrong:v1", "fn:v1"}, then: []string{"wrong:v1", "fn:v1"}, want: "fn:v1@sha256:1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &registry{digest: "1", lookups: make(map[string][]time.Time)}
				m := start(t, &cluster{}, r)
				list(m, tc.minPod, tc.images...)
				<-time.After(time.Hour)
				if tc.moved {
					r.mu.Lock()
					r.digest = "2"
					r.mu.Unlock()
				}
				list(m, tc.minPod, tc.then...)
				<-time.After(2 * time.Hour)
				if got := ready(t, m); got != tc.want {
					t.Errorf("ready pods of %q, want %q: %s", got, tc.want, tc.reason)
				}
				if tc.minPod == 0 && len(r.lookups) > 0 {
					t.Errorf("%v were looked up, want none", r.lookups)
				}
			})
		})
	}
}

// TestMinimumIsWarm has a caller of a listed function wait for no pod.
func TestMinimumIsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, &cluster{}, &registry{lookups: make(map[string][]time.Time)})
		list(m, 1, "fn:v1")
		<-time.After(10 * time.Second)
		held, err := m.Lease(t.Context(), open("fn:v1"), quietly)
		if err != nil || held.Granted().GetColdStart() {
			t.Fatalf("%v, %v, want a lease of the pod that is there", held, err)
		}
	})
}

func TestListedImagesAreLookedUpAgain(t *testing.T) {
	tests := map[string]struct {
		reason      string
		image       string
		least, most int           // lookups in an hour
		second      time.Duration // at the latest
	}{
		"wrong": {"it may be pushed, and the image-resolver may just come last", "wrong", 55, 70, 3 * time.Second},
		"good":  {"its tag may move", "good", 55, 65, time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &registry{lookups: make(map[string][]time.Time)}
				list(start(t, &cluster{}, r), 1, tc.image)
				<-time.After(time.Hour)
				r.mu.Lock()
				defer r.mu.Unlock()
				got := r.lookups[tc.image]
				if len(got) < tc.least || len(got) > tc.most || got[1].Sub(got[0]) > tc.second {
					t.Errorf("%d lookups in an hour, the second after %v: %s", len(got), got[1].Sub(got[0]), tc.reason)
				}
			})
		})
	}
}

// TestSilentRegistries has many images that cannot be looked up before one that can.
func TestSilentRegistries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silent, atOnce = 160, 16
		r := &registry{lookups: make(map[string][]time.Time)}
		m := start(t, &cluster{}, r)
		images := []string{"zgood:v1"}
		for i := range silent {
			images = append(images, "silent"+strconv.Itoa(i))
		}
		list(m, 1, images...)
		<-time.After(silent/atOnce*30*time.Second + 10*time.Second)
		if ready(t, m) == "" {
			t.Error("the one that can be looked up has no pod")
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.most > atOnce {
			t.Errorf("%d lookups at a time, want %d at most", r.most, atOnce)
		}
	})
}

// TestListedFunctionIsLookedUpAtOnce has a function be listed while nothing else happens.
func TestListedFunctionIsLookedUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{digest: "1", lookups: make(map[string][]time.Time)}
		m := start(t, &cluster{}, r)
		<-time.After(90 * time.Second) // between two lookups of all
		list(m, 1, "fn:v1")
		<-time.After(5 * time.Second)
		if got := ready(t, m); got != "fn:v1@sha256:1" {
			t.Errorf("ready are %q, want the listed function", got)
		}
	})
}
