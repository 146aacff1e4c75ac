// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"encoding/base64"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// wrongTime is the API server as seen from a program whose own clock is behind: the time in its
// answers is ahead. It returns replacements for testdata/function-runner: the address to reach it.
func wrongTime(t *testing.T, behind time.Duration) []string {
	t.Helper()
	target, transport := apiServer(t)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:   func(request *httputil.ProxyRequest) { request.SetURL(target) },
		Transport: transport,
		ModifyResponse: func(response *http.Response) error {
			now, err := http.ParseTime(response.Header.Get("Date"))
			response.Header.Set("Date", now.Add(behind).Format(http.TimeFormat))
			return err
		},
	})
	_ = server.Listener.Close() // there only programs on the node could reach it
	var err error
	if server.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp",
		net.JoinHostPort(target.Hostname(), "0")); err != nil {
		t.Fatal(err)
	}
	server.EnableHTTP2 = true // as the API server
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections() // watches have no end
		server.Close()
	})
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return []string{"API-SERVER", server.URL, "API-CERTIFICATE", base64.StdEncoding.EncodeToString(certificate)}
}

// apiServer returns the API server's address, and an anonymous configuration to trust it.
func apiServer(t *testing.T) (*url.URL, http.RoundTripper) {
	t.Helper()
	s.Registry(t, "open") // fails without a test bed
	config, err := clientcmd.BuildConfigFromFlags("", s.Bed.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return target, transport
}
