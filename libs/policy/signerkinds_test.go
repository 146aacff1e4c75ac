// SPDX-License-Identifier: Apache-2.0

package policy_test

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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/policy"
)

// authority returns the certificate of an authority in DER.
func authority(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// files writes the files beside a policy into a new directory.
func files(t testing.TB) string {
	t.Helper()
	dir, der := t.TempDir(), authority(t)
	root := fmt.Sprintf(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1",`+
		`"certificateAuthorities":[{"certChain":{"certificates":[{"rawBytes":%q}]}}],`+
		`"tlogs":[{"publicKey":{"rawBytes":"AA=="}}]}`, base64.StdEncoding.EncodeToString(der))
	for name, content := range map[string]string{
		"root.json": root, "half.json": root[:len(root)/2], "large.json": strings.Repeat(" ", 70<<10), "cosign.pub": key,
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSignersOfAllKinds(t *testing.T) {
	dir := files(t)
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(`
default: deny
signers:
- {name: release, keyFiles: [cosign.pub]}
- name: ci
  keyless:
    trustedRootFile: root.json
    identities:
    - {issuer: https://issuer, subject: ci@example.com}
    - {issuer: https://issuer, subjectPattern: https://github.com/example/**}
- {name: audit, notation: {caFiles: [ca.crt, ca.crt], identities: ["C=US, ST=WA, O=example.com"]}}
rules: [{name: r, action: allow, signers: [release, ci, audit]}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	file, content, err := policy.Read(path)
	certificates := strings.Count(string(content), "BEGIN CERTIFICATE")
	if err != nil || !strings.Contains(string(content), "tlogs") || certificates != 2 {
		t.Fatalf("read %q, %v", content, err)
	}
	p, err := policy.Compile(file, policy.Lists{})
	if err != nil {
		t.Fatal(err)
	}
	got := p.Signers()
	if len(got) != 3 || len(got[0].Keys) != 1 || len(got[1].Keyless.Identities) != 2 ||
		!strings.Contains(string(got[1].Keyless.TrustedRoot), "tlogs") || len(got[2].Notation.Authorities) != 2 {
		t.Errorf("signers %+v", got)
	}
	if got[1].Keyless.Identities[1].SubjectPattern != "https://github.com/example/**" || got[1].Keys != nil {
		t.Errorf("a keyless signer %+v", got[1])
	}
}

func TestSignersWithoutOneKindAreRejected(t *testing.T) {
	const identities = "identities: [{issuer: a, subject: b}]"
	dir := files(t)
	for signer, says := range map[string]string{
		"keys: a, keyless: {trustedRootFile: root.json, " + identities + "}":   "only one of keys",
		"keyless: {trustedRootFile: root.json}, notation: {caFiles: [ca.crt]}": "only one of keys",
		"keyless: {trustedRootFile: root.json}":                                "keyless: identities has 0 entries",
		"keyless: {" + identities + "}":                                        `trustedRootFile has ""`,
		"keyless: {trustedRootFile: ../root.json, " + identities + "}":         "beside the policy",
		"keyless: {trustedRootFile: none.json, " + identities + "}":            "trustedRootFile: read the key file",
		"keyless: {trustedRootFile: half.json, " + identities + "}":            "the trusted root: it is not the JSON",
		"keyless: {trustedRootFile: large.json, " + identities + "}":           "may have up to 65536",
		"keyless: {trustedRootFile: root.json, identities: [{issuer: a}]}":     "either subject or subjectPattern",
		"keyless: {root: a}": "field root not found",
		`notation: {caFiles: [ca.crt], identities: ["CN=a"]}`:                         "notation: identities[0]",
		`notation: {identities: ["C=US, ST=WA, O=a"]}`:                                "0 certificates of authorities",
		`notation: {caFiles: [cosign.pub], identities: ["C=US, ST=WA, O=a"]}`:         "caFiles: it has a PUBLIC KEY",
		`notation: {caFiles: ["/etc/passwd"], identities: ["C=US, ST=WA, O=a"]}`:      "beside the policy",
		`notation: {caFiles: [ca.crt], level: audit, identities: ["C=US,ST=WA,O=a"]}`: "field level not found",
	} {
		file, err := policy.Parse([]byte("default: deny\nsigners: [{name: a, " + signer + "}]\n"))
		if err == nil {
			_, err = file.ReadKeys(dir)
		}
		if err == nil {
			_, err = policy.Compile(file, policy.Lists{})
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", signer, err, says)
		}
	}
}

// TestTrustIsBounded has signers with equal roots, which count once, and with roots that differ.
func TestTrustIsBounded(t *testing.T) {
	dir := files(t)
	root, err := os.ReadFile(filepath.Join(dir, "root.json"))
	if err != nil {
		t.Fatal(err)
	}
	root = append(root, strings.Repeat(" ", 60<<10)...)
	for name, same := range map[string]bool{"the same root": true, "other roots": false} {
		content := []byte("default: deny\nsigners:\n")
		for i := range 6 {
			file := "same.json"
			if !same {
				file = fmt.Sprintf("root%d.json", i)
			}
			if err := os.WriteFile(filepath.Join(dir, file), append(root, strings.Repeat(" ", i)...), 0o600); err != nil {
				t.Fatal(err)
			}
			content = fmt.Appendf(content, "- name: s%d\n  keyless: {trustedRootFile: %s, "+
				"identities: [{issuer: a, subject: b}]}\n", i, file)
		}
		file, err := policy.Parse(content)
		if err == nil {
			_, err = file.ReadKeys(dir)
		}
		if err == nil {
			_, err = policy.Compile(file, policy.Lists{})
		}
		if (err == nil) != same || err != nil && !strings.Contains(err.Error(), "may have up to 262144") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
