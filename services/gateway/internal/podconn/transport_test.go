// SPDX-License-Identifier: Apache-2.0

package podconn_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

const (
	gateway = "spiffe://function-runner/gateway"
	podID   = "spiffe://function-runner/function-pod/porch-fn-system/set-namespace-1"
	secret  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// secured starts a pod that proves who it is, to callers that the authority knows.
func secured(t testing.TB, authority *mtlstest.Authority) (address string) {
	t.Helper()
	proof, err := mtls.NewProof(podID, secret)
	if err != nil {
		t.Fatal(err)
	}
	quiet := telemetry.Discard()
	identity, err := mtls.Make(proof, string(authority.PEM), quiet.Log, quiet.Meters)
	if err != nil {
		t.Fatal(err)
	}
	return testpod.ServeSecured(t, identity, gateway, 1<<23, echo)
}

// TestEstablishedConnectionsForgetErrors has a first handshake that fails, a second one that succeeds although no
// caller waits for it, and then a pod that does not answer.
func TestEstablishedConnectionsForgetErrors(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	pod := podconn.Pod{UID: "uid", Address: secured(t, authority), ID: podID, Secret: secret}
	established := make(chan net.Conn, 100)
	var attempts atomic.Int32
	var unanswered atomic.Bool
	pool := newPoolOf(t, podconn.Config{
		Idle: time.Minute, Max: 1, MaxMessageBytes: 1 << 20, Identity: authority.Identity(t, gateway),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if attempts.Add(1) == 1 {
				client, server := net.Pipe()
				return client, server.Close()
			}
			if unanswered.Load() {
				<-ctx.Done()
				return nil, fmt.Errorf("no answer: %w", ctx.Err())
			}
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				established <- conn
			}
			return conn, err
		},
	})
	conn := get(t, pool, pod)
	defer conn.Release(false)
	connect := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		return conn.Connect(ctx)
	}
	_ = connect(0)
	await.Equal(t, "connected", conn.Connected, true)
	unanswered.Store(true)
	for len(established) > 0 {
		_ = (<-established).Close()
	}
	await.Equal(t, "connected", conn.Connected, false)
	if err := connect(time.Millisecond); err == nil || strings.Contains(err.Error(), "TLS") {
		t.Errorf("Connect = %v, want that the pod does not answer", err)
	}
}

// TestPodsProveWhoTheyAre connects to pods that are the wanted ones, and to others at their address.
func TestPodsProveWhoTheyAre(t *testing.T) {
	authority, stranger := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	known, plain := authority.Identity(t, gateway), testpod.Serve(t, 1<<20, echo)
	right := podconn.Pod{UID: "uid", Address: secured(t, authority), ID: podID, Secret: secret}
	with := func(change func(*podconn.Pod)) podconn.Pod { pod := right; change(&pod); return pod }
	for name, test := range map[string]struct {
		identity *mtls.Identity
		pod      podconn.Pod
		err      string
	}{
		"the pod":                   {identity: known, pod: right},
		"a pod without certificate": {known, podconn.Pod{UID: "uid", Address: plain}, ""},
		"another pod":               {known, with(func(p *podconn.Pod) { p.ID += "0" }), "the server is " + podID + ", not"},
		"another secret":            {known, with(func(p *podconn.Pod) { p.Secret += "0" }), "does not prove it"},
		"no TLS":                    {known, with(func(p *podconn.Pod) { p.Address = plain }), "set up TLS with " + plain},
		"another trust":             {stranger.Identity(t, gateway), right, "bad certificate"},
		"no identity":               {nil, right, "requires a valid client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := newPoolOf(t, podconn.Config{Idle: time.Minute, Max: 10, MaxMessageBytes: 1 << 20, Identity: test.identity})
			conn, err := pool.Get(test.pod)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release(false)
			// A connection that fails is tried again until the deadline, whose error has the reason of the last attempt
			// that ended. On a busy machine it takes longer until one has.
			for limit := 50 * time.Millisecond; limit < 5*time.Minute; limit *= 4 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				if err = conn.Connect(ctx); err == nil {
					_, err = conn.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{})
				}
				cancel()
				if err == nil || (test.err != "" && strings.Contains(err.Error(), test.err)) {
					break
				}
			}
			switch {
			case test.err == "" && err != nil:
				t.Error(err)
			case test.err != "" && err == nil:
				t.Error("the pod is called")
			case test.err != "" && !strings.Contains(err.Error(), test.err):
				t.Errorf("got %q, want %q in it", err, test.err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the secret is in %q", err)
			}
		})
	}
}
