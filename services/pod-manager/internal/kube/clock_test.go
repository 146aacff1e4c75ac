// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// answers is a Kubernetes API whose answers take some time, and tell the time.
type answers struct {
	takes time.Duration
	date  func() string
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	<-time.After(a.takes / 2)
	date := a.date()
	<-time.After(a.takes / 2)
	return &http.Response{Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
}

// ask has the clock hear an answer.
func ask(t *testing.T, clock *kube.Clock, a answers) {
	t.Helper()
	response, err := clock.Listen(a).RoundTrip(httptest.NewRequest(http.MethodGet, "https://kubernetes/", http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

func TestClock(t *testing.T) {
	ahead := func(d time.Duration) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	}
	tests := map[string]struct {
		reason string
		answers
		want time.Duration
		warn bool
	}{
		"ahead":  {"the other clock is right", answers{0, ahead(time.Hour)}, time.Hour, true},
		"behind": {"in whichever direction", answers{0, ahead(-time.Hour)}, -time.Hour, true},
		"a little": {
			"synchronized clocks differ by some seconds, which is not logged",
			answers{0, ahead(5 * time.Second)},
			5 * time.Second, false,
		},
		"slow": {"an answer that takes long says less exactly what time it is", answers{4 * time.Second, ahead(time.Second)}, 0, false},
		"slow and ahead": {
			"but it may say enough", answers{4 * time.Second, ahead(time.Minute)}, time.Minute, true,
		},
		"same":    {"a time in whole seconds is right for a second", answers{0, ahead(0)}, 0, false},
		"nothing": {"a proxy may leave it out", answers{0, func() string { return "" }}, 0, false},
		"garbage": {"or write something else", answers{0, func() string { return "noon" }}, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				clock := kube.NewClock(slog.New(slog.NewTextHandler(&log, nil)))
				for range 3 {
					ask(t, clock, tc.answers)
				}
				now := time.Now()
				if got := clock.Theirs(now).Sub(now); (got - tc.want).Abs() > 2*time.Second {
					t.Errorf("they are ahead by %s, want %s: %s", got, tc.want, tc.reason)
				}
				if back := clock.Ours(clock.Theirs(now)); !back.Equal(now) {
					t.Errorf("there and back, %s is %s", now, back)
				}
				if warned := strings.Count(log.String(), "clocks"); warned > 1 || (warned == 1) != tc.warn {
					t.Errorf("log %q: %s", log.String(), tc.reason)
				}
				if !clock.Ours(time.Time{}).IsZero() {
					t.Error("no time became one")
				}
			})
		})
	}
}

// TestPodsGoByTheirClock has an API whose clock is ahead by an hour, and replicas that
// are right, as far as they know.
func TestPodsGoByTheirClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := kube.NewClock(slog.New(slog.DiscardHandler))
		ask(t, clock, answers{0, func() string { return time.Now().Add(time.Hour).UTC().Format(http.TimeFormat) }})
		w := start(t, func(c *kube.Config) { c.Clock = clock })
		until := time.Now().Add(time.Hour)
		w.create()
		var seen time.Time
		for _, e := range w.news() {
			if o, ok := e.(pool.PodObserved); ok {
				seen = o.ReclaimAfter
			}
		}
		if (seen.Sub(until)).Abs() > 2*time.Second {
			t.Errorf("the pod is seen to end at %s, want %s", seen, until)
		}
		if written := w.reclaimAfter(t); (written.Sub(until) - time.Hour).Abs() > 2*time.Second {
			t.Errorf("the pod is to end at %s, want an hour after %s", written, until)
		}
		pod := w.pod(t)
		w.Extend(pool.Extend{Name: pod.Name, UID: string(pod.UID), ReclaimAfter: until.Add(time.Minute)})
		synctest.Wait()
		if written := w.reclaimAfter(t); (written.Sub(until) - time.Hour - time.Minute).Abs() > 2*time.Second {
			t.Errorf("the pod was extended to %s, want an hour after %s", written, until.Add(time.Minute))
		}
	})
}

// reclaimAfter is what the only pod says.
func (w *world) reclaimAfter(t *testing.T) time.Time {
	t.Helper()
	seconds, err := strconv.ParseInt(w.pod(t).Annotations[podspec.AnnotationReclaimAfter], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(seconds, 0)
}

// TestConnectListens asks a real server.
func TestConnectListens(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"clusters":[{"name":"a","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"a","context":{"cluster":"a"}}],"current-context":"a"}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	clock := kube.NewClock(log)
	client, err := kube.Connect(path, clock, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("a").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Error("there is a pod")
	}
	now := clock.Now()
	if behind := now.Sub(clock.Theirs(now)); (behind - time.Hour).Abs() > time.Minute {
		t.Errorf("they are behind by %s, want an hour", behind)
	}
}
