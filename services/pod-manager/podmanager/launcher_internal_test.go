// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
		"has them":           {"no pod is made in another way", 0, true, 0, []podspec.Launcher{imageVolume}},
		"has none":           {"nor here", 0, false, 0, []podspec.Launcher{initContainer}},
		"away for an hour":   {"what is safe until it answers, whenever that is", time.Hour, true, 0, []podspec.Launcher{initContainer, imageVolume}},
		"nodes cannot":       {"one pod was enough to find out", 0, true, time.Minute, []podspec.Launcher{imageVolume, initContainer}},
		"nodes cannot, away": {"what a pod proved stays proved", time.Hour, true, time.Minute, []podspec.Launcher{initContainer, initContainer}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var used []podspec.Launcher
				l := &launching{
					ask: func(ctx context.Context) (bool, error) {
						if time.Since(begin) >= tc.answered {
							return tc.can, nil
						}
						ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
						defer cancel()
						<-ctx.Done()
						return false, errors.New("no answer")
					},
					use: func(l podspec.Launcher) { used = append(used, l) },
					log: slog.New(slog.DiscardHandler),
				}
				if tc.failed > 0 {
					time.AfterFunc(tc.failed, func() { l.fail("cannot mount") })
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
