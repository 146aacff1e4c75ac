// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/testing/rerun"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// proxy is an HTTP proxy that knows the way to one host, and what it was asked for.
type proxy struct {
	host, leadsTo string

	mu      sync.Mutex
	refused int // requests without the password
	reached int // connections to the host
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+password))
	p.mu.Lock()
	if req.Header.Get("Proxy-Authorization") != want {
		p.refused++
	}
	if req.Host == p.host {
		p.reached++
	}
	p.mu.Unlock()
	if req.Method != http.MethodConnect || req.Host != p.host {
		http.Error(w, "no way to "+req.Host, http.StatusBadGateway)
		return
	}
	there, err := net.Dial("tcp", p.leadsTo)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	go func() {
		_, _ = io.Copy(there, here)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
	_ = here.Close()
}

func TestProxyOfTheEnvironment(t *testing.T) {
	authority, directory := testcert.NewAuthority(t), t.TempDir()
	testcert.Write(t, directory, "ca.crt", authority.PEM)
	registry := testregistry.Start(t, authority.Server(t, time.Now().Add(time.Hour)))
	registry.Push(t, "fn:v1", function)
	p := &proxy{host: testcert.Name + ":443", leadsTo: registry.Host}
	server := httptest.NewServer(p)
	defer server.Close()
	address := url.URL{Scheme: "http", Host: server.Listener.Addr().String(), User: url.UserPassword("user", password)}

	directory, there := rerun.Test(t, directory, "HTTPS_PROXY="+address.String(), "HTTP_PROXY=", "NO_PROXY=",
		"https_proxy=", "no_proxy=")
	if !there {
		if p.refused > 0 || p.reached == 0 || registry.Count("GET /v2/fn/manifests/") != 1 {
			t.Errorf("%d connections through the proxy, %d of all without its password, %d manifests", p.reached, p.refused,
				registry.Count("GET /v2/fn/manifests/"))
		}
		return
	}
	cfg := newConfig(t)
	cfg.TLSSecretPath = directory
	r, said := start(t, cfg)
	if _, err := resolve(t, r, testcert.Name+"/fn:v1"); err != nil {
		t.Errorf("through the proxy: %v", err)
	}
	_, err := resolve(t, r, "other.example/fn:v1")
	if fault.Of(err) != fault.Unavailable {
		t.Fatalf("where the proxy knows no way: %v, want Unavailable", err)
	}
	expectText(t, err, "other.example", "Bad Gateway", "proxies")
	expectNoSecret(t, said.all())
}
