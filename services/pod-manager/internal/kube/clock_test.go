// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// answer is a Kubernetes API's answer with a time.
type answer time.Time

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	date := time.Time(a).UTC().Format(http.TimeFormat)
	return &http.Response{Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
}

// hears has a clock hear what time it is for the Kubernetes API.
func hears(t *testing.T, clock *kubeclient.Clock, date time.Time) {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "https://kubernetes/", http.NoBody)
	response, err := clock.Listen(answer(date)).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

// TestPodsGoByTheirClock has an API whose clock is ahead by an hour, and replicas that
// are right, as far as they know.
func TestPodsGoByTheirClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := kubeclient.NewClock(slog.New(slog.DiscardHandler))
		hears(t, clock, time.Now().Add(time.Hour))
		w := start(t, func(c *kube.Config) { c.Clock = clock })
		until := time.Now().Add(time.Hour)
		w.create()
		var seen time.Time
		for _, e := range w.events() {
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
