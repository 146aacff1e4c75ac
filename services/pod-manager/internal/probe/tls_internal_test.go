// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// secured starts a pod that proves who it is, and accepts callers that an authority knows.
func secured(t *testing.T, id pool.Identity, authority *mtlstest.Authority) (address string) {
	t.Helper()
	proof, err := mtls.NewProof(id.ID, id.Secret)
	if err != nil {
		t.Fatal(err)
	}
	quiet := telemetry.Discard()
	identity, err := mtls.Make(proof, string(authority.PEM), quiet.Log, quiet.Meters)
	if err != nil {
		t.Fatal(err)
	}
	l := servetest.Listen(t)
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(identity.Server())))
	healthv1.RegisterHealthServer(s, health.NewServer())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }() // it is stopped
	t.Cleanup(func() { s.Stop(); <-ended })
	return l.Addr().String()
}

// TestPodsThatProveWhoTheyAre asks pods that are healthy, but not all for this program.
func TestPodsThatProveWhoTheyAre(t *testing.T) {
	authority, next := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	own := authority.Identity(t, "spiffe://function-runner/pod-manager")
	pod := pool.Identity{ID: "spiffe://function-runner/function-pod/fns/a", Secret: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
	other := pool.Identity{ID: pod.ID, Secret: "abcdefghijklmnopqrstuvwxyz"}
	for name, test := range map[string]struct {
		address string
		pod     pool.Identity
		serves  bool
	}{
		"right":                             {secured(t, pod, authority), pod, true},
		"another at its address":            {secured(t, other, authority), pod, false},
		"one that knows former authorities": {secured(t, pod, next), pod, false},
		"one with a broken identity":        {secured(t, pod, authority), pool.Identity{ID: "pod"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			if test.serves {
				ctx = t.Context()
			}
			defer cancel()
			err := asker{own}.probeUntilServing(ctx, pool.Probe{Name: "pod", Address: test.address, Identity: test.pod})
			if (err == nil) != test.serves {
				t.Errorf("got %v, serves %v", err, test.serves)
			}
		})
	}
}
