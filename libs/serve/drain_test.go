// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

func TestDrainLastsWhileClientsComeAnew(t *testing.T) {
	const delay, age = 4 * time.Second, 5 * time.Minute
	tests := map[string]struct {
		path   string
		until  time.Duration // a request on a connection of its own comes each second
		want   time.Duration
		reason string
	}{
		"none":    {"/", 0, delay, "the delay is for load balancers that are late"},
		"at once": {"/", delay / 4, delay, "they came early in the delay only"},
		"late": {
			"/", 2*delay + delay/4, 2*delay + delay/4 + delay/2,
			"half a delay without new connections: there will be no more",
		},
		"always": {"/", time.Hour, serve.LongestDrain * delay, "the process has to end"},
		"probes": {"/grpc.health.v1.Health/Check", time.Hour, delay, "a health check does not need another replica"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := pipenet.Listen()
				p := start(t, serve.Config{DrainDelay: delay, ShutdownTimeout: time.Minute}, serve.Component{
					Endpoints: []serve.Endpoint{{
						Name: "test", Listener: listener, MaxConnectionAge: age, Handler: http.NotFoundHandler(),
					}},
				})
				synctest.Wait()
				p.stop()
				<-p.stopping
				begin := time.Now()
				go comeAnew(t.Context(), listener, tc.path, tc.until)
				if err := <-p.ended; err != nil {
					t.Errorf("Run = %v", err)
				}
				if took := time.Since(begin).Round(100 * time.Millisecond); took != tc.want {
					t.Errorf("it drains for %v, want %v: %s", took, tc.want, tc.reason)
				}
			})
		})
	}
}

// comeAnew makes a request on a new connection each second for a while.
func comeAnew(ctx context.Context, listener *pipenet.Pipes, path string, lasts time.Duration) {
	c := &http.Client{Transport: &http.Transport{DialContext: listener.DialContext, DisableKeepAlives: true}}
	for end := time.Now().Add(lasts); time.Now().Before(end) && retry.Sleep(ctx, time.Second); {
		if resp, err := c.Get("http://test" + path); err == nil {
			_ = resp.Body.Close()
		}
	}
}
