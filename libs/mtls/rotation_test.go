// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// TestRotationLosesNothing replaces certificates every 100 ms, and the authority meanwhile, under 30
// callers.
func TestRotationLosesNothing(t *testing.T) {
	const life = 5 * time.Minute
	authority, next := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	dirs := map[string]string{server: t.TempDir(), caller: t.TempDir()}
	var identities []*mtls.Identity
	write := func(a *mtlstest.Authority, others ...*mtlstest.Authority) {
		for id, dir := range dirs {
			a.Write(t, dir, id, life, others...)
		}
		authorities := slices.Clone(a.PEM)
		for _, other := range others {
			authorities = append(authorities, other.PEM...)
		}
		for _, i := range identities { // all trust an authority before it issues, however busy the machine is
			await.Equal(t, "the authorities", i.Authorities, string(authorities))
		}
	}
	write(authority)
	for _, id := range []string{caller, server} {
		identities = append(identities, mtlstest.Open(t, dirs[id]))
	}
	identity, address := identities[0], start(t, identities[1])

	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var calls, failed atomic.Int64
	for range 30 {
		c := dial(t, "https://"+address, identity.ClientOfSibling("server"))
		callers.Go(func() {
			for ctx.Err() == nil {
				err := c.call(context.WithoutCancel(ctx))
				if busy(err) {
					continue
				}
				if calls.Add(1); err != nil && failed.Add(1) < 10 {
					t.Error(err)
				}
			}
		})
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := range 50 {
		<-tick.C
		switch {
		case n < 15:
			write(authority)
		case n < 25:
			write(authority, next)
		case n < 35:
			write(next, authority)
		default:
			write(next)
		}
	}
	stop()
	callers.Wait()
	t.Logf("%d calls", calls.Load())
	if failed.Load() > 0 || calls.Load() == 0 {
		t.Errorf("%d of %d calls failed", failed.Load(), calls.Load())
	}
}

// busy reports whether a call got no TCP connection in time: TLS had not begun, and the machine has other work.
func busy(err error) bool {
	return err != nil && strings.Contains(err.Error(), "dial tcp") && strings.HasSuffix(err.Error(), "i/o timeout")
}

// TestAConnectionEndsBeforeItsCertificate has a client that does not use its connection for as long as its
// certificate lives. It has another one then.
func TestAConnectionEndsBeforeItsCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := mtlstest.NewAuthority(t, 24*time.Hour)
		open := func(id string, life time.Duration) (*mtls.Identity, string) {
			dir := t.TempDir()
			authority.Write(t, dir, id, life)
			tel := telemetry.Discard()
			identity, err := mtls.Open(mtls.Config{Directory: dir}, tel.Log, tel.Meters)
			if err != nil {
				t.Fatal(err)
			}
			return identity, dir
		}
		of, _ := open(server, 24*time.Hour)
		identity, dir := open(caller, time.Minute)
		var ids []string
		conns := pipenet.Listen()
		ctx, stop := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		defer serving.Wait()
		defer stop()
		serving.Go(func() {
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ids = append(ids, mtls.Peer(r.TLS).String())
			})
			err := serve.Run(ctx, serve.Config{ShutdownTimeout: time.Minute}, telemetry.Discard().Log, new(serve.Health),
				serve.Component{Endpoints: []serve.Endpoint{{Handler: handler, Listener: conns, TLS: of.Server()}}})
			if err != nil {
				t.Error(err)
			}
		})
		protocols := new(http.Protocols)
		protocols.SetHTTP2(true)
		dials := 0
		transport := &http.Transport{
			Protocols: protocols, TLSClientConfig: identity.ClientOfSibling("server"),
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				dials++
				return conns.DialContext(ctx, network, address)
			},
		}
		defer transport.CloseIdleConnections()
		get := func() {
			t.Helper()
			resp, err := (&http.Client{Transport: transport}).Get("https://server/")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		get()
		<-time.After(30 * time.Second)
		get() // on the same connection
		if dials != 1 {
			t.Errorf("%d connections, want one", dials)
		}
		authority.Write(t, dir, caller, time.Hour)
		identity.Look(t.Context())
		<-time.After(time.Minute)
		get()
		if dials != 2 || !slices.Equal(ids, []string{caller, caller, caller}) {
			t.Errorf("%d connections of %q, want another one that proves who calls", dials, ids)
		}
	})
}
