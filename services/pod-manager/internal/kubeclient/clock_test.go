// SPDX-License-Identifier: Apache-2.0

package kubeclient_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
)

// answers is a Kubernetes API whose answers take some time, and carry the time.
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
func ask(t *testing.T, clock *kubeclient.Clock, a answers) {
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
		"slow": {
			"an answer that takes long says less exactly what time it is",
			answers{4 * time.Second, ahead(time.Second)},
			0, false,
		},
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
				clock := kubeclient.NewClock(slog.New(slog.NewTextHandler(&log, nil)))
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

// TestConnectListens asks a real server.
func TestConnectListens(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"clusters":[{"name":"a","cluster":{"server":"` + server.URL + `"}}],` +
		`"contexts":[{"name":"a","context":{"cluster":"a"}}],"current-context":"a"}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	clock := kubeclient.NewClock(log)
	client, err := kubeclient.Connect(path, clock, log)
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
