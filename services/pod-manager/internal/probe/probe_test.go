// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newProber returns a prober that does not run yet, and what it tells.
func newProber() (*probe.Prober, <-chan pool.Event) {
	sent := make(chan pool.Event, 10)
	return probe.New(nil, func(e pool.Event) { sent <- e }), sent
}

// newProberOf returns a prober for which the pods at the address "serving" serve, and others never answer.
func newProberOf() (*probe.Prober, <-chan pool.Event) {
	sent := make(chan pool.Event, 10)
	ask := func(ctx context.Context, pod pool.Probe) error {
		if pod.Address == "serving" {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	return probe.NewAsking(ask, func(e pool.Event) { sent <- e }), sent
}

// run runs a prober until the test ends.
func run(t *testing.T, p *probe.Prober) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// next waits for what a prober tells.
func next(t *testing.T, sent <-chan pool.Event) pool.Probed {
	t.Helper()
	select {
	case e := <-sent:
		probed, ok := e.(pool.Probed)
		if !ok {
			t.Fatalf("sent %#v, want an answer to a probe", e)
		}
		return probed
	case <-time.After(time.Minute):
		t.Fatal("the prober tells nothing")
		return pool.Probed{}
	}
}

// server starts a wrapper server that serves or not, at a free address if address is
// empty.
func server(t *testing.T, address string, status healthv1.HealthCheckResponse_ServingStatus) (string, *health.Server) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	h := health.NewServer()
	h.SetServingStatus("", status)
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, h)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }() // it is stopped
	t.Cleanup(func() { s.Stop(); <-ended })
	return l.Addr().String(), h
}

func TestServing(t *testing.T) {
	p, sent := newProber()
	run(t, p)
	address, _ := server(t, "", healthv1.HealthCheckResponse_SERVING)
	p.Probe(pool.Probe{Name: "pod", UID: "uid", Address: address})
	if got, want := next(t, sent), (pool.Probed{Name: "pod", UID: "uid"}); got != want {
		t.Errorf("sent %+v, want %+v", got, want)
	}
}

func TestServesLater(t *testing.T) {
	t.Run("no server listens yet", func(t *testing.T) {
		p, sent := newProber()
		run(t, p)
		address := freeport.Address(t)
		p.Probe(pool.Probe{Name: "pod", UID: "uid", Address: address})
		// This one needs several attempts, so the first one has had some by then.
		p.Probe(pool.Probe{Name: "other", UID: "uid", Address: freeport.Address(t), Timeout: 50 * time.Millisecond})
		if got := next(t, sent); got.Name != "other" {
			t.Fatalf("sent %+v before a server listens", got)
		}
		server(t, address, healthv1.HealthCheckResponse_SERVING)
		if got := next(t, sent); got.Name != "pod" || got.Unhealthy != "" {
			t.Errorf("sent %+v, want that it serves", got)
		}
	})
	t.Run("it says so", func(t *testing.T) {
		p, sent := newProber()
		run(t, p)
		address, h := server(t, "", healthv1.HealthCheckResponse_NOT_SERVING)
		p.Probe(pool.Probe{Name: "pod", UID: "uid", Address: address})
		// A machine that is busy may need more than a little timeout for one answer.
		for timeout := 50 * time.Millisecond; ; timeout *= 2 {
			p.Probe(pool.Probe{Name: "other", UID: "uid", Address: address, Timeout: timeout})
			got := next(t, sent)
			if got.Name == "other" && strings.Contains(got.Unhealthy, "NOT_SERVING") {
				break
			}
			if got.Name != "other" || timeout > time.Minute {
				t.Fatalf("sent %+v, want what it said last of the one with %v of timeout", got, timeout)
			}
		}
		h.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
		if got := next(t, sent); got.Name != "pod" || got.Unhealthy != "" {
			t.Errorf("sent %+v, want that it serves", got)
		}
	})
}

func TestProbeTimeout(t *testing.T) {
	silent := servetest.Listen(t)
	tests := map[string]struct {
		reason  string
		address string
		timeout time.Duration
		want    string
	}{
		"refused": {
			"the cause is what helps, not that time is up",
			freeport.Address(t), 50 * time.Millisecond, "connection refused",
		},
		"refused on": {
			"it stays the cause when an attempt is cut short",
			freeport.Address(t), 1100 * time.Millisecond, "connection refused",
		},
		"silent": {
			"one who takes the call and says nothing is as bad",
			silent.Addr().String(), 400 * time.Millisecond, "check the health of " + silent.Addr().String() + ": ",
		},
		"no name": {
			"names are looked up anew for each attempt",
			"pod..invalid:9446", 50 * time.Millisecond, "pod..invalid",
		},
	}
	p, sent := newProber()
	run(t, p)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// On a busy machine, a short timeout may be over before the first attempt is.
			for timeout := tc.timeout; ; timeout *= 4 {
				p.Probe(pool.Probe{Name: "pod", UID: "uid", Address: tc.address, Timeout: timeout})
				got := next(t, sent)
				if strings.Contains(got.Unhealthy, tc.want) {
					break
				}
				if got.Unhealthy == "" || timeout > 5*time.Second {
					t.Fatalf("unhealthy because of %q, want %q in it: %s", got.Unhealthy, tc.want, tc.reason)
				}
			}
		})
	}
}

func TestForget(t *testing.T) {
	short, long := 50*time.Millisecond, 500*time.Millisecond
	t.Run("before it began", func(t *testing.T) {
		p, sent := newProber()
		p.Probe(pool.Probe{Name: "gone", UID: "uid", Address: freeport.Address(t), Timeout: short})
		p.Forget("gone", "uid")
		p.Probe(pool.Probe{Name: "pod", UID: "uid", Address: freeport.Address(t), Timeout: long})
		run(t, p)
		if got := next(t, sent); got.Name != "pod" {
			t.Errorf("sent %+v, but that pod is gone", got)
		}
	})
	t.Run("after it began", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, sent := newProberOf()
			run(t, p)
			p.Probe(pool.Probe{Name: "gone", UID: "uid", Timeout: long})
			p.Probe(pool.Probe{Name: "first", UID: "uid", Timeout: short})
			p.Probe(pool.Probe{Name: "second", UID: "uid", Timeout: 2 * long})
			if got := next(t, sent); got.Name != "first" {
				t.Fatalf("sent %+v, want the one with the least timeout first", got)
			}
			p.Forget("gone", "uid")
			if got := next(t, sent); got.Name != "second" {
				t.Errorf("sent %+v, but that pod is gone", got)
			}
		})
	})
	t.Run("another pod has the name", func(t *testing.T) {
		p, sent := newProber()
		run(t, p)
		p.Probe(pool.Probe{Name: "pod", UID: "new", Address: freeport.Address(t), Timeout: short})
		p.Forget("pod", "old")
		if got := next(t, sent); got.UID != "new" {
			t.Errorf("sent %+v, want the new one", got)
		}
	})
}

func TestNewProbeReplacesOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, sent := newProberOf()
		run(t, p)
		p.Probe(pool.Probe{Name: "pod", UID: "uid", Timeout: 50 * time.Millisecond})
		synctest.Wait() // the old probe has begun
		p.Probe(pool.Probe{Name: "pod", UID: "uid", Address: "serving"})
		if got := next(t, sent); got.Unhealthy != "" {
			t.Errorf("sent %+v, want the answer from the new address", got)
		}
		p.Probe(pool.Probe{Name: "other", UID: "uid", Timeout: 200 * time.Millisecond})
		if got := next(t, sent); got.Name != "other" {
			t.Errorf("sent %+v, want nothing of the old probe", got)
		}
	})
}

func TestRunEndsProbes(t *testing.T) {
	p, sent := newProber()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	p.Probe(pool.Probe{Name: "pod", UID: "uid", Address: freeport.Address(t)})
	p.Probe(pool.Probe{Name: "other", UID: "uid", Address: freeport.Address(t), Timeout: 50 * time.Millisecond})
	next(t, sent)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(sent) > 0 {
		t.Errorf("sent %+v at the end", <-sent)
	}
}
