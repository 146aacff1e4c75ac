// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"crypto/x509"
	"net/url"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

func TestIDs(t *testing.T) {
	valid := []string{
		"spiffe://function-runner", "spiffe://function-runner/gateway",
		"spiffe://cluster.local/ns/porch-system/sa/gateway", "spiffe://td/fn/set-namespace/pod/a-1_B.c",
	}
	for _, text := range valid {
		if id, err := mtls.ParseID(text); err != nil || id.String() != text {
			t.Errorf("%s: got %q, %v", text, id, err)
		}
	}
	invalid := []string{
		"", "spiffe://", "spiffe:///gateway", "https://function-runner/gateway", "SPIFFE://td/x", "spiffe://TD/x",
		"spiffe://td/", "spiffe://td//x", "spiffe://td/x/", "spiffe://td/../x", "spiffe://td/./x", "spiffe://td/a%2fb",
		"spiffe://td:80/x", "spiffe://user@td/x", "spiffe://td/x?y", "spiffe://td/x#y", "spiffe://td/x y",
		"spiffe://td/ä", "spiffe://td/x\n", "spiffe://td/*", "spiffe://td/" + strings.Repeat("a", 2048),
	}
	for _, text := range invalid {
		if id, err := mtls.ParseID(text); err == nil || id != (mtls.ID{}) {
			t.Errorf("%q is an ID: %v", text, id)
		}
	}
}

func TestPatterns(t *testing.T) {
	patterns, err := mtls.ParsePatterns([]string{"spiffe://td/gateway", "spiffe://td/fn/*", "spiffe://all/*"})
	if err != nil {
		t.Fatal(err)
	}
	if got := patterns.String(); got != "spiffe://td/gateway,spiffe://td/fn/*,spiffe://all/*" {
		t.Errorf("the patterns read %s", got)
	}
	for text, want := range map[string]bool{
		"spiffe://td/gateway": true, "spiffe://td/gateway/x": false, "spiffe://td/gatewayx": false, "spiffe://td": false,
		"spiffe://other/gateway": false, "spiffe://td/fn": false, "spiffe://td/fn/a": true, "spiffe://td/fn/a/pod/b": true,
		"spiffe://td/fnx/a": false, "spiffe://all": false, "spiffe://all/x": true,
	} {
		id, err := mtls.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := patterns.Match(id); got != want {
			t.Errorf("%s matches: %v, want %v", text, got, want)
		}
		if mtls.Patterns(nil).Match(id) {
			t.Errorf("%s matches no patterns", text)
		}
	}
	if patterns.Match(mtls.ID{}) {
		t.Error("no ID matches")
	}
	if _, err := mtls.ParsePatterns([]string{"spiffe://td/gateway", "gateway", "*"}); err == nil ||
		!strings.Contains(err.Error(), `"gateway"`) || !strings.Contains(err.Error(), `"*"`) {
		t.Errorf("got %v, want both wrong patterns named", err)
	}
}

func TestIDOfCertificate(t *testing.T) {
	uri := func(s string) *url.URL { u, _ := url.Parse(s); return u }
	for name, uris := range map[string][]*url.URL{
		"none": nil, "two": {uri("spiffe://td/a"), uri("spiffe://td/b")}, "another": {uri("https://td/a")},
		"encoded": {uri("spiffe://td/a%2Fb")}, "query": {uri("spiffe://td/a?b")},
	} {
		if id, err := mtls.IDOf(&x509.Certificate{URIs: uris}); err == nil {
			t.Errorf("%s: got %s", name, id)
		}
	}
	if id, err := mtls.IDOf(&x509.Certificate{URIs: []*url.URL{uri("spiffe://td/a")}}); err != nil ||
		id.String() != "spiffe://td/a" || id.URL().String() != "spiffe://td/a" {
		t.Errorf("got %s, %v", id, err)
	}
}

func FuzzID(f *testing.F) {
	for _, seed := range []string{"spiffe://td/a/b", "spiffe://td", "spiffe://td/%41", "spiffe://td/a/*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := mtls.ParseID(text)
		if err != nil {
			return
		}
		if id.String() != text {
			t.Errorf("%q reads %q", text, id)
		}
		u, err := url.Parse(text)
		if err != nil || u.String() != text || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Port() != "" {
			t.Errorf("%q is no plain URI: %v", text, err)
		}
		if !patterns(t, id.String()).Match(id) {
			t.Errorf("%q does not match itself", text)
		}
	})
}
