// SPDX-License-Identifier: Apache-2.0

package podconn_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPool returns a pool that runs until the test ends.
func newPool(t testing.TB, maxIdle int) *podconn.Pool {
	t.Helper()
	return newPoolOf(t, podconn.Config{Idle: time.Minute, Max: maxIdle, MaxMessageBytes: 1 << 20})
}

func newPoolOf(t testing.TB, cfg podconn.Config) *podconn.Pool {
	t.Helper()
	cfg.Telemetry = telemetry.Discard()
	p := podconn.New(cfg)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return p
}

func get(t testing.TB, p *podconn.Pool, pod podconn.Pod) *podconn.Conn {
	t.Helper()
	c, err := p.Get(pod)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func echo(_ context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
}

func TestOneConnectionForEachPod(t *testing.T) {
	p := newPool(t, 10)
	address := testpod.Serve(t, 1<<20, echo)
	first := get(t, p, podconn.Pod{UID: "uid", Address: address})
	if err := first.Connect(t.Context()); err != nil || !first.Connected() {
		t.Fatalf("not connected: %v", err)
	}
	if second := get(t, p, podconn.Pod{UID: "uid", Address: address}); second != first {
		t.Error("a second connection to the same pod")
	} else {
		second.Release(false)
	}
	other := get(t, p, podconn.Pod{UID: "another uid", Address: address})
	if other == first {
		t.Error("a new pod got the connection of the earlier one")
	}
	other.Release(false)
	if resp, err := first.EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{ResourceList: []byte("x")}); err != nil || string(resp.GetResourceList()) != "x" {
		t.Errorf("got %v, %v", resp, err)
	}
	first.Release(false)
	if again := get(t, p, podconn.Pod{UID: "uid", Address: address}); again != first || !again.Connected() {
		t.Error("the connection was not kept")
	} else {
		again.Release(false)
	}
}

func TestABrokenPodsConnectionIsNotUsedAgain(t *testing.T) {
	p := newPool(t, 10)
	address := testpod.Serve(t, 1<<20, echo)
	pod := podconn.Pod{UID: "uid", Address: address}
	broken, same := get(t, p, pod), get(t, p, pod)
	broken.Release(true)
	if next := get(t, p, pod); next == broken {
		t.Error("the connection of a broken pod was used again")
	} else {
		next.Release(false)
	}
	if _, err := same.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{}); err != nil {
		t.Errorf("the other user's call ended with %v", err)
	}
	same.Release(false)
	if same.Connected() {
		t.Error("the connection was not closed after its last use")
	}
}

func TestUnusedConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, 10)
		used := get(t, p, podconn.Pod{UID: "used", Address: "pod:1"})
		get(t, p, podconn.Pod{UID: "unused", Address: "pod:2"}).Release(false)
		<-time.After(30 * time.Second)
		if p.Len() != 2 {
			t.Errorf("%d connections before the idle time", p.Len())
		}
		<-time.After(time.Minute)
		if p.Len() != 1 {
			t.Errorf("%d connections, want the one in use", p.Len())
		}
		used.Release(false)
	})
}

func TestUnusedConnectionsAreBounded(t *testing.T) {
	p := newPool(t, 3)
	var conns []*podconn.Conn
	for i := range 5 {
		conns = append(conns, get(t, p, podconn.Pod{UID: strconv.Itoa(i), Address: "pod:1"}))
	}
	if p.Len() != 5 {
		t.Errorf("%d connections in use, want 5", p.Len())
	}
	for _, c := range conns {
		c.Release(false)
	}
	if p.Len() != 3 {
		t.Errorf("%d connections, want 3", p.Len())
	}
	if newest := get(t, p, podconn.Pod{UID: "4", Address: "pod:1"}); newest != conns[4] {
		t.Error("the most recently used connection was closed")
	} else {
		newest.Release(false)
	}
}

// TestConnectionsInUseDoNotCountAsUnused uses more pods than unused connections are kept.
func TestConnectionsInUseDoNotCountAsUnused(t *testing.T) {
	p := newPool(t, 2)
	var used []*podconn.Conn
	for i := range 5 {
		used = append(used, get(t, p, podconn.Pod{UID: strconv.Itoa(i), Address: "pod:1"}))
	}
	for i := 5; i < 7; i++ {
		get(t, p, podconn.Pod{UID: strconv.Itoa(i), Address: "pod:1"}).Release(false)
	}
	if p.Len() != 7 {
		t.Errorf("%d connections, want 5 in use and 2 without", p.Len())
	}
	get(t, p, podconn.Pod{UID: "7", Address: "pod:1"}).Release(false)
	if p.Len() != 7 {
		t.Errorf("%d connections, want 5 in use and 2 without", p.Len())
	}
	for _, c := range used {
		c.Release(false)
	}
	if p.Len() != 2 {
		t.Errorf("%d connections, want 2 without use", p.Len())
	}
}

func TestConnectSaysWhyNot(t *testing.T) {
	c := get(t, newPool(t, 1), podconn.Pod{UID: "uid", Address: "127.0.0.1:1"})
	defer c.Release(false)
	// On a busy machine, a short time may be over before the first attempt is.
	for timeout := 50 * time.Millisecond; ; timeout *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		err := c.Connect(ctx)
		cancel()
		if err != nil && strings.Contains(err.Error(), "connection refused") {
			return
		}
		if err == nil || timeout > time.Minute {
			t.Fatalf("Connect = %v, want the reason", err)
		}
	}
}

// TestConnectForgetsErrorsOfEarlierSteps has a first attempt that fails in one step, and a second one that hangs in
// its TLS handshake.
func TestConnectForgetsErrorsOfEarlierSteps(t *testing.T) {
	identity := mtlstest.NewAuthority(t, time.Hour).Identity(t, gateway)
	for name, test := range map[string]struct {
		dialError error
		want      string
	}{
		"failed dial":      {errors.New("no such host"), "connect to pod:1: context deadline exceeded"},
		"failed handshake": {nil, "set up TLS with pod:1: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				p := newPoolOf(t, podconn.Config{
					Idle: time.Minute, Max: 1, MaxMessageBytes: 1 << 20,
					Identity: identity,
					Dial: func(context.Context, string, string) (net.Conn, error) {
						attempts++
						if attempts == 1 && test.dialError != nil {
							return nil, test.dialError
						}
						client, server := net.Pipe()
						t.Cleanup(func() { _ = server.Close() })
						if attempts == 1 {
							go func() {
								_, _ = server.Read(make([]byte, 1<<12))
								_ = server.Close()
							}()
						}
						return client, nil
					},
				})
				c := get(t, p, podconn.Pod{UID: "uid", Address: "pod:1", ID: podID, Secret: secret})
				defer c.Release(false)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if err := c.Connect(ctx); err == nil || err.Error() != test.want || attempts != 2 {
					t.Errorf("Connect = %v after %d attempts, want %q after 2", err, attempts, test.want)
				}
			})
		})
	}
}

// TestConnectionsInUseAreClosedAfterTheEnd: their users release them when Run has ended.
func TestConnectionsInUseAreClosedAfterTheEnd(t *testing.T) {
	p := podconn.New(podconn.Config{Idle: time.Minute, Max: 10, MaxMessageBytes: 1 << 20, Telemetry: telemetry.Discard()})
	c := get(t, p, podconn.Pod{UID: "uid", Address: "127.0.0.1:1"})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	c.Release(false)
	if n := p.Len(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}
