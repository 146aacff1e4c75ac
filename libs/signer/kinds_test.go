// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/signer"
)

// certificate returns a certificate in DER, of an authority or of another program.
func certificate(t testing.TB, authority bool) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		BasicConstraintsValid: true, IsCA: authority,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

const rootType = `"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"`

// trustedRoot returns a trusted root with one authority and one log.
func trustedRoot(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf(`{%s,"certificateAuthorities":[{"certChain":{"certificates":[{"rawBytes":%q}]}}],`+
		`"tlogs":[{"publicKey":{"rawBytes":"AA=="}}]}`,
		rootType, base64.StdEncoding.EncodeToString(certificate(t, true)))
}

func TestKeylessSignersThatAreRejected(t *testing.T) {
	root := trustedRoot(t)
	good := signer.Identity{Issuer: "https://issuer", Subject: "ci@example.com"}
	tests := map[string]struct {
		root       string
		identities []signer.Identity
		says       string // empty if it is accepted
	}{
		"good":          {root, []signer.Identity{good}, ""},
		"no identity":   {root, nil, "identities has 0 entries"},
		"many":          {root, make([]signer.Identity, 21), "identities has 21 entries"},
		"no issuer":     {root, []signer.Identity{good, {Subject: "a"}}, "identities[1]: issuer is empty"},
		"no subject":    {root, []signer.Identity{{Issuer: "a"}}, "either subject or subjectPattern"},
		"two subjects":  {root, []signer.Identity{{Issuer: "a", Subject: "b", SubjectPattern: "c"}}, "either subject or"},
		"a long text":   {root, []signer.Identity{{Issuer: strings.Repeat("a", 1025), Subject: "b"}}, "more than 1024 bytes"},
		"no root":       {"", []signer.Identity{good}, "the trusted root: it is not the JSON"},
		"half a root":   {root[:len(root)/2], []signer.Identity{good}, "it is not the JSON"},
		"a large root":  {strings.Repeat(" ", 65<<10), []signer.Identity{good}, "it has 66560 bytes"},
		"another JSON":  {`{"mediaType":"a"}`, []signer.Identity{good}, `its mediaType is "a"`},
		"no authority":  {"{" + rootType + "}", []signer.Identity{good}, "it has no certificateAuthorities"},
		"no log":        {strings.Replace(root, "tlogs", "logs", 1), []signer.Identity{good}, "it has no tlogs"},
		"a log, no key": {strings.Replace(root, `"AA=="`, `""`, 1), []signer.Identity{good}, "tlogs[0] has no publicKey"},
		"a broken certificate": {
			strings.Replace(root, `"rawBytes":"`, `"rawBytes":"AAAA`, 1), []signer.Identity{good}, "certificateAuthorities[0]",
		},
	}
	for name, tc := range tests {
		k := signer.Keyless{TrustedRoot: []byte(tc.root), Identities: tc.identities}
		if err := k.Check(); (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}

func TestIdentitiesMatchWholeSubjects(t *testing.T) {
	const issuer = "https://issuer"
	k := signer.Keyless{Identities: []signer.Identity{
		{Issuer: issuer, Subject: "ci@example.com"},
		{Issuer: issuer, SubjectPattern: "https://github.com/org/*/.github/workflows/release.yml@refs/tags/**"},
		{Issuer: "https://other", Subject: "a.b"},
	}}
	matches, err := k.Matcher()
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]bool{
		"ci@example.com": true, "ci@example.com.evil": false, "xci@example.com": false, "ci@examplexcom": false,
		"ci@example.com\n": false, "a.b": false, "": false,
		"https://github.com/org/repo/.github/workflows/release.yml@refs/tags/v1/x":  true,
		"https://github.com/org/a/b/.github/workflows/release.yml@refs/tags/v1":     false,
		"https://github.com/org/repo/.github/workflows/releasexyml@refs/tags/v1":    false,
		"xhttps://github.com/org/repo/.github/workflows/release.yml@refs/tags/v1":   false,
		"https://github.com/evil/https://github.com/org/r/.github/workflows/x@refs": false,
	} {
		if matches(issuer, subject) != want {
			t.Errorf("%q: %t, want %t", subject, !want, want)
		}
	}
	if matches("https://other", "ci@example.com") || !matches("https://other", "a.b") {
		t.Error("a subject of another issuer matches")
	}
}

func TestNotationSignersThatAreRejected(t *testing.T) {
	authority, leaf := certificate(t, true), certificate(t, false)
	const good = "C=US, ST=WA, O=example.com"
	tests := map[string]struct {
		authorities [][]byte
		identities  []string
		says        string // empty if it is accepted
	}{
		"good":                {[][]byte{authority}, []string{good, `S=W\,A,O=a\+b,C=DE,CN=x`}, ""},
		"no authority":        {nil, []string{good}, "0 certificates of authorities"},
		"many":                {make([][]byte, 11), []string{good}, "11 certificates of authorities"},
		"a leaf":              {[][]byte{leaf}, []string{good}, "is not that of an authority"},
		"a broken one":        {[][]byte{[]byte("a")}, []string{good}, "read the certificate of an authority"},
		"a large one":         {[][]byte{make([]byte, 5000)}, []string{good}, "5000 bytes"},
		"no identity":         {[][]byte{authority}, nil, "identities has 0 entries"},
		"any subject":         {[][]byte{authority}, []string{"*"}, `identities[0]: "*" is not a subject`},
		"no state":            {[][]byte{authority}, []string{good, "C=US, O=a"}, "identities[1]: "},
		"twice":               {[][]byte{authority}, []string{good + ", O=b"}, "each attribute once"},
		"several in one part": {[][]byte{authority}, []string{"C=US+ST=WA, O=a"}, "with the attributes C, ST and O"},
		"hexadecimal":         {[][]byte{authority}, []string{"C=US, ST=WA, O=#0401"}, "is not a subject"},
		"a long one":          {[][]byte{authority}, []string{strings.Repeat("a", 1025)}, "1025 bytes"},
	}
	for name, tc := range tests {
		n := signer.Notation{Authorities: tc.authorities, Identities: tc.identities}
		if err := n.Check(); (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}

func TestAuthoritiesArePEM(t *testing.T) {
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("one")}))
	got, err := signer.ParseAuthorities([]byte(text + "\n" + text + "\n"))
	if err != nil || len(got) != 2 || string(got[1]) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	for text, says := range map[string]string{
		text + "x": "text that is not a CERTIFICATE", strings.ReplaceAll(text, "CERTIFICATE", "KEY"): "it has a KEY",
	} {
		if _, err := signer.ParseAuthorities([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// FuzzNotationSubjects has no subject that is accepted without its three attributes.
func FuzzNotationSubjects(f *testing.F) {
	for _, seed := range []string{"C=US, ST=WA, O=example.com", `C=a\,b,S=c,O=d`, `\`, "C=US+O=a", "=,=,="} {
		f.Add(seed)
	}
	authority := certificate(f, true)
	f.Fuzz(func(t *testing.T, subject string) {
		n := signer.Notation{Authorities: [][]byte{authority}, Identities: []string{subject}}
		if n.Check() == nil && strings.Count(subject, "=") < 3 {
			t.Errorf("%q is accepted", subject)
		}
	})
}
