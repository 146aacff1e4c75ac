// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// some is a digest.
var some = "sha256:" + strings.Repeat("a", 64)

// signatureLayer returns a layer with a signature.
func signatureLayer(size int, signature string) string {
	return fmt.Sprintf(`{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","size":%d,"digest":%q,`+
		`"annotations":{"dev.cosignproject.cosign/signature":%q}}`, size, some, signature)
}

// bundleLayer returns a layer that is a bundle.
func bundleLayer(size int) string {
	return fmt.Sprintf(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","size":%d,"digest":%q}`, size, some)
}

// TestArtifactsOfNotationAreReadIfWanted has one, and an envelope in it.
func TestArtifactsOfNotationAreReadIfWanted(t *testing.T) {
	index := []byte(`{"manifests":[{"artifactType":"application/vnd.cncf.notary.signature","digest":"` + some + `"}]}`)
	for wanted, n := range map[bool]int{true: 1, false: 0} {
		if got, err := oci.ParseReferrers(index, wanted); len(got) != n || err != nil {
			t.Errorf("wanted %t: %q, %v", wanted, got, err)
		}
	}
	for form, size := range map[string]int{"application/jose+json": 100, "application/cose": oci.MaxPayloadBytes + 1} {
		got, err := oci.ParseSignatures(layers(fmt.Sprintf(`{"mediaType":%q,"size":%d,"digest":%q}`, form, size, some)))
		if size == 100 && (err != nil || len(got) != 1 || got[0].Envelope != form || got[0].Value != nil) ||
			size != 100 && fault.Of(err) != fault.Precondition {
			t.Errorf("%s: %+v, %v", form, got, err)
		}
	}
}

// TestCertificatesAreReadBesideSignatures has what cosign puts there.
func TestCertificatesAreReadBesideSignatures(t *testing.T) {
	layer := strings.Replace(signatureLayer(100, "YQ=="), `"annotations":{`, `"annotations":{`+
		`"dev.sigstore.cosign/certificate":"c","dev.sigstore.cosign/bundle":"l",`+
		`"dev.sigstore.cosign/rfc3161timestamp":"t",`, 1)
	got, err := oci.ParseSignatures(layers(layer))
	if err != nil || len(got) != 1 || got[0].Certificate != "c" || got[0].Log != "l" || got[0].Timestamp != "t" {
		t.Errorf("%+v, %v", got, err)
	}
	raw := bundle(`{}`, "YQ==")
	for with, want := range map[string]bool{
		`"certificate":{}`: true, `"x509CertificateChain":{}`: true, `"publicKey":{}`: false,
	} {
		text := strings.Replace(string(raw), "{", `{"verificationMaterial":{`+with+"},", 1)
		if got, ok := oci.ParseBundle([]byte(text)); !ok || got.Certified != want {
			t.Errorf("%s: %+v, %t", with, got, ok)
		}
	}
}

func layers(all ...string) []byte { return []byte(`{"layers":[` + strings.Join(all, ",") + `]}`) }

func TestSignaturesAreReadWithinBounds(t *testing.T) {
	many := make([]string, oci.MaxSignatures+1)
	for i := range many {
		many[i] = signatureLayer(1, "")
	}
	tests := map[string]struct {
		raw  []byte
		want int // -1 for an error
		says string
	}{
		"one":            {layers(signatureLayer(200, "YQ==")), 1, ""},
		"no base64":      {layers(signatureLayer(200, "!")), 1, ""},
		"too long":       {layers(signatureLayer(200, strings.Repeat("A", 4000))), 1, ""},
		"another layer":  {layers(`{"mediaType":"text/plain","size":1,"digest":"` + some + `"}`), 0, ""},
		"none":           {[]byte(`{}`), 0, ""},
		"a bundle":       {layers(bundleLayer(100)), 1, ""},
		"a large bundle": {layers(bundleLayer(oci.MaxPayloadBytes + 1)), 0, ""},
		"an attestation": {
			[]byte(`{"annotations":{"dev.sigstore.bundle.predicateType":"https://slsa.dev/provenance/v1"},"layers":[` +
				bundleLayer(100) + `]}`), 0, "",
		},
		"a huge payload":   {layers(signatureLayer(oci.MaxPayloadBytes+1, "YQ==")), -1, "only up to 65536 are read"},
		"too many":         {layers(many...), -1, "more than 100 signatures"},
		"no JSON":          {[]byte(`<html>`), -1, "not valid"},
		"too many layers":  {layers(strings.Split(strings.Repeat("{},", 2000)+"{}", ",")...), -1, "more than 2000 entries"},
		"a layer's digest": {layers(strings.Replace(signatureLayer(1, ""), "sha256:", "../", 1)), -1, "not valid"},
	}
	for name, tc := range tests {
		got, err := oci.ParseSignatures(tc.raw)
		if (err != nil) != (tc.want < 0) || err == nil && len(got) != tc.want {
			t.Errorf("%s: %d signatures, %v, want %d", name, len(got), err, tc.want)
		}
		if err != nil && (fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v of class %v, want precondition with %q", name, err, fault.Of(err), tc.says)
		}
	}
	got, _ := oci.ParseSignatures(layers(signatureLayer(200, "YQ=="), signatureLayer(200, "!")))
	if string(got[0].Value) != "a" || got[0].Payload != some || got[1].Value != nil {
		t.Errorf("read %+v", got)
	}
}

func TestReferrersAreReadWithinBounds(t *testing.T) {
	index := func(n int) []byte {
		one := `{"artifactType":"application/vnd.dev.cosign.artifact.sig.v1+json","digest":"` + some + `"},`
		return []byte(`{"manifests":[` + strings.Repeat(one, n) + `{"artifactType":"application/spdx+json","digest":"` +
			some + `"}]}`)
	}
	if got, err := oci.ParseReferrers(index(oci.MaxArtifacts), false); len(got) != oci.MaxArtifacts || err != nil {
		t.Errorf("%d digests, %v", len(got), err)
	}
	for _, raw := range [][]byte{index(oci.MaxArtifacts + 1), []byte(`[]`)} {
		if _, err := oci.ParseReferrers(raw, false); fault.Of(err) != fault.Precondition {
			t.Errorf("%v of class %v, want precondition", err, fault.Of(err))
		}
	}
}

// payload returns what cosign signs.
func payload(digest, kind string) string {
	return `{"critical":{"identity":{"docker-reference":"a.io/fn"},"image":{"docker-manifest-digest":"` + digest +
		`"},"type":"` + kind + `"},"optional":null}`
}

func TestPayloadsNameTheirImage(t *testing.T) {
	const kind = "cosign container image signature"
	if got := oci.SignedDigests([]byte(payload(some, kind))); !slices.Equal(got, []string{some}) {
		t.Errorf("%q", got)
	}
	for reason, text := range map[string]string{
		"another kind of statement": payload(some, "atomic container signature"),
		"no digest":                 payload("", kind),
		"a malformed digest":        payload("sha256:a", kind),
		"no JSON":                   payload(some, kind) + "x",
		"too large":                 payload(some, kind) + strings.Repeat(" ", oci.MaxPayloadBytes),
		"nothing":                   "",
	} {
		if got := oci.SignedDigests([]byte(text)); len(got) > 0 {
			t.Errorf("%s: %q", reason, got)
		}
	}
}

// bundle returns a statement in an envelope.
func bundle(statement, signature string) []byte {
	return fmt.Appendf(nil, `{"dsseEnvelope":{"payload":%q,"payloadType":"application/vnd.in-toto+json",`+
		`"signatures":[{"sig":%q}]}}`, base64.StdEncoding.EncodeToString([]byte(statement)), signature)
}

// statement returns what cosign states of an image.
func statement(digest, predicate string) string {
	return `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + digest +
		`"}}],"predicateType":"` + predicate + `","predicate":{}}`
}

func TestBundlesStateWhatIsSigned(t *testing.T) {
	const sign = "https://sigstore.dev/cosign/sign/v1"
	hex := strings.TrimPrefix(some, "sha256:")
	got, ok := oci.ParseBundle(bundle(statement(hex, sign), "YQ=="))
	text := statement(hex, sign)
	signed := fmt.Sprintf("DSSEv1 28 application/vnd.in-toto+json %d %s", len(text), text)
	if !ok || string(got.Signed) != signed || string(got.Values[0]) != "a" {
		t.Errorf("%+v, %v", got, ok)
	}
	if digests := got.SignedDigests(); !slices.Equal(digests, []string{some}) {
		t.Errorf("signed: %q", digests)
	}
	if digests := (oci.Bundle{}).SignedDigests(); digests != nil {
		t.Errorf("nothing states %q", digests)
	}
	for reason, text := range map[string]string{
		"provenance is no signature": statement(hex, "https://slsa.dev/provenance/v1"), "no digest": statement("", sign),
		"no JSON": "x",
	} {
		if got, _ := oci.ParseBundle(bundle(text, "YQ==")); len(got.SignedDigests()) > 0 {
			t.Errorf("%s: %q", reason, got.SignedDigests())
		}
	}
	many := strings.Replace(string(bundle("{}", "")), `{"sig":""}`, strings.Repeat(`{"sig":""},`, 10)+`{"sig":""}`, 1)
	for reason, raw := range map[string]string{
		"no JSON": "<html>", "no envelope": "{}", "too many signatures": many,
		"too large": string(bundle(strings.Repeat(" ", oci.MaxPayloadBytes), "")),
	} {
		if _, ok := oci.ParseBundle([]byte(raw)); ok {
			t.Errorf("%s: read", reason)
		}
	}
}

// FuzzParseBundle reads bundles: nothing makes it panic, and what it returns is within its bounds.
func FuzzParseBundle(f *testing.F) {
	f.Add(bundle(statement("a", "https://sigstore.dev/cosign/sign/v1"), "YQ=="))
	f.Add([]byte(`{"dsseEnvelope":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := oci.ParseBundle(raw)
		if !ok && got.Signed != nil || len(got.Values) > 10 || len(got.Signed) > oci.MaxPayloadBytes+100 {
			t.Errorf("%d signatures of %d bytes", len(got.Values), len(got.Signed))
		}
		for _, digest := range got.SignedDigests() {
			if !strings.HasPrefix(digest, "sha256:") {
				t.Errorf("%q", digest)
			}
		}
	})
}

// FuzzSignedDigests reads payloads: nothing makes it panic, and each digest that it returns is written in the
// payload as one.
func FuzzSignedDigests(f *testing.F) {
	f.Add([]byte(payload(some, "cosign container image signature")))
	f.Add([]byte(`{"critical":{"image":{"docker-manifest-digest":"sha256:x"}}}`))
	f.Add([]byte(`{"critical":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, digest := range oci.SignedDigests(raw) {
			algorithm, hex, _ := strings.Cut(digest, ":")
			if algorithm == "" || hex == "" || !json.Valid(raw) || len(raw) > oci.MaxPayloadBytes {
				t.Errorf("%q from %q", digest, raw)
			}
		}
	})
}

// FuzzParseSignatures reads manifests: nothing makes it panic, and what it returns is within its bounds.
func FuzzParseSignatures(f *testing.F) {
	f.Add(layers(signatureLayer(200, "YQ==")))
	f.Add(layers(`{"annotations":{"a":"b"}}`))
	f.Add([]byte(`{"layers":null,"layers":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := oci.ParseSignatures(raw)
		if len(got) > oci.MaxSignatures || err != nil && got != nil {
			t.Errorf("%d signatures, %v", len(got), err)
		}
		for _, s := range got {
			if len(s.Value) > 2<<10 {
				t.Errorf("a signature of %d bytes", len(s.Value))
			}
		}
	})
}
