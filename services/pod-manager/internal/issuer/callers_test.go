// SPDX-License-Identifier: Apache-2.0

package issuer_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
)

// TestIssuersRotateUnderCallers has two replicas issue the certificates of a client and a server, which they
// do every 100 ms, and replace the authority meanwhile, under 10 callers.
func TestIssuersRotateUnderCallers(t *testing.T) {
	w := newWorld(t)
	w.enforceVersions()
	w.put(t, authority, agedAuthority(t))
	identities := map[string]*mtls.Identity{}
	for name := range ids {
		servetest.Go(t, w.issuer(t, 20*time.Minute, func(c *issuer.Config) {
			// An authority of this life is valid from four minutes before it is created.
			c.Pause = 10 * time.Millisecond
			c.Spread = 4*time.Minute + 2*time.Second
		}).Run)
		identities[name] = newHeld(t).identity
	}
	for name := range ids {
		await.Equal(t, name+" has a certificate", func() bool { return w.follow(t, name, identities[name]) != "" }, true)
	}
	url := "https://" + serveOK(t, identities["pod-manager-tls"])
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var calls, failed atomic.Int64
	for range 10 {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: identities["gateway-tls"].ClientOfSibling("pod-manager"), ForceAttemptHTTP2: true,
		}}
		callers.Go(func() {
			defer client.CloseIdleConnections()
			for n := 0; ctx.Err() == nil; n++ {
				if err := get(context.WithoutCancel(ctx), client, url); err != nil && failed.Add(1) < 10 {
					t.Error(err)
				}
				if calls.Add(1); n%10 == 0 {
					client.CloseIdleConnections() // new connections use new certificates
				}
			}
		})
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	signers := map[string]bool{}
	// On a busy machine, it takes longer until there are many certificates of both authorities.
	for n := 0; n < 50 || len(signers) < 2 || w.log.Count("certificate issued") < 20; n++ {
		<-tick.C
		for name := range ids {
			if signer := w.follow(t, name, identities[name]); signer != "" {
				signers[signer] = true
				w.put(t, name, map[string][]byte{}) // so it is due
			}
		}
	}
	stop()
	callers.Wait()
	t.Logf("%d calls, %d failed", calls.Load(), failed.Load())
}

// serveOK serves an empty answer to the gateway, and returns its address.
func serveOK(t *testing.T, identity *mtls.Identity) string {
	t.Helper()
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		access, err := rpcserve.Callers(identity, []string{ids["gateway-tls"].String()})
		if err != nil {
			return serve.Component{}, err
		}
		ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access, Port: "test"}
		handler := rpcserve.NewHandler(cfg, rpcserve.Service{
			Name: "test", MaxRequestBytes: 1, MaxResponseBytes: 1,
			Handler: func(...connect.HandlerOption) (string, http.Handler) { return "/", ok },
		})
		return serve.Component{Endpoints: []serve.Endpoint{{Name: "test", Handler: handler, TLS: identity.Server()}}}, nil
	})
}

// get calls a server.
func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("status %d", resp.StatusCode), resp.Body.Close())
	}
	return resp.Body.Close()
}

// follow gives a program the certificate in its Secret, as a volume does, and returns the certificate's issuer. The
// issuer is empty if the Secret contains no certificate.
func (w *world) follow(t *testing.T, name string, identity *mtls.Identity) string {
	t.Helper()
	data := w.data(t, name)
	pair, err := tls.X509KeyPair(data[mtls.CertificateFile], data[mtls.KeyFile])
	if err != nil {
		return ""
	}
	if err := identity.Replace(data); err != nil {
		t.Error(err)
	}
	return pair.Leaf.Issuer.String()
}

// agedAuthority returns the Secret of an authority that is past the middle of its life.
func agedAuthority(t *testing.T) (data map[string][]byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		w := newWorld(t)
		servetest.Go(t, w.issuer(t, time.Hour, func(c *issuer.Config) {
			c.AuthorityLife = time.Until(time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC))
		}).Run)
		synctest.Wait()
		data = w.data(t, authority)
	})
	return data
}

// enforceVersions has the API reject updates of what was written since it was read, as the real one does.
func (w *world) enforceVersions() {
	w.client.PrependReactor("update", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		next := a.(clienttesting.UpdateAction).GetObject().(*corev1.Secret).DeepCopy()
		found, err := w.client.Tracker().Get(secrets, namespace, next.Name)
		if err != nil {
			return true, nil, err
		}
		if version := found.(*corev1.Secret).ResourceVersion; version != next.ResourceVersion {
			return true, nil, apierrors.NewConflict(secrets.GroupResource(), next.Name, nil)
		}
		n, _ := strconv.Atoi(next.ResourceVersion)
		next.ResourceVersion = strconv.Itoa(n + 1)
		return true, next, w.client.Tracker().Update(secrets, next, namespace)
	})
}
