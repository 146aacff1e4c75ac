// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

func TestLaunching(t *testing.T) {
	const initContainer, imageVolume = podspec.InitContainer, podspec.ImageVolume
	tests := map[string]struct {
		reason   string
		answered time.Duration // when the Kubernetes API begins to answer
		can      bool
		failed   time.Duration // when a pod shows that its node cannot; 0: never
		want     []podspec.Launcher
	}{
		"has them": {"no pod is made in another way", 0, true, 0, []podspec.Launcher{imageVolume}},
		"has none": {"nor here", 0, false, 0, []podspec.Launcher{initContainer}},
		"away for an hour": {
			"what is safe until it answers, whenever that is",
			time.Hour, true, 0,
			[]podspec.Launcher{initContainer, imageVolume},
		},
		"nodes cannot": {
			"one pod was enough to find out",
			0, true, time.Minute,
			[]podspec.Launcher{imageVolume, initContainer},
		},
		"nodes cannot, away": {
			"what a pod proved stays proved",
			time.Hour, true, time.Minute,
			[]podspec.Launcher{initContainer, initContainer},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var used []podspec.Launcher
				l := &Launching{
					version: func(ctx context.Context) (*version.Info, error) {
						if time.Since(begin) >= tc.answered {
							return &version.Info{Major: "1", Minor: map[bool]string{true: "35", false: "34"}[tc.can]}, nil
						}
						<-ctx.Done()
						return nil, errors.New("no answer")
					},
					use: func(l podspec.Launcher) { used = append(used, l) },
					log: slog.New(slog.DiscardHandler),
				}
				if tc.failed > 0 {
					time.AfterFunc(tc.failed, func() {
						l.mu.Lock()
						defer l.mu.Unlock()
						l.fallBack("cannot mount")
					})
				}
				if err := l.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-time.After(2 * time.Minute)
				synctest.Wait()
				if !slices.Equal(used, tc.want) {
					t.Errorf("launchers in force are %v, want %v: %s", used, tc.want, tc.reason)
				}
			})
		})
	}
}

func TestLauncherByVersion(t *testing.T) {
	tests := map[string]struct {
		reason string
		minor  string
		want   podspec.Launcher
		fails  string
	}{
		"new":    {"it has them unless a feature gate is off, which pods show", "35", podspec.ImageVolume, ""},
		"old":    {"it had to be switched on", "34", podspec.InitContainer, ""},
		"suffix": {"some distributions write it so", "35+", podspec.ImageVolume, ""},
		"odd":    {"nothing follows from it", "new", "", "set the launcher"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := &Launching{version: func(context.Context) (*version.Info, error) {
				return &version.Info{Major: "1", Minor: tc.minor}, nil
			}}
			got, err := l.supportedLauncher(t.Context())
			if got != tc.want || (err == nil) != (tc.fails == "") || (err != nil && !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("got %q, %v: want %q, %q: %s", got, err, tc.want, tc.fails, tc.reason)
			}
		})
	}
}

// TestVersionIsAsked asks a real server, and one that is gone.
func TestVersionIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		_, _ = w.Write([]byte(`{"major": "1", "minor": "36"}`))
	}))
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
	l := NewLaunching(client, nil, slog.New(slog.DiscardHandler))
	if got, err := l.supportedLauncher(t.Context()); err != nil || got != podspec.ImageVolume {
		t.Errorf("got %q, %v, want %q", got, err, podspec.ImageVolume)
	}
	server.Close()
	if got, err := l.supportedLauncher(t.Context()); err == nil {
		t.Errorf("got %q from a server that is gone", got)
	}
}
