// SPDX-License-Identifier: Apache-2.0

package provenance_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/krm-function-runner/function-runner/build/images/provenance"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

var build = provenance.Build{
	Version: "v1", Platforms: []string{"linux/amd64"}, Revision: "c0ffee",
	Tools: map[string]string{"go": "go1"}, SBOMs: []string{"sha256:5b"},
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestVerifyReturnsWhatWasAttested(t *testing.T) {
	image, err := name.NewDigest("registry.example/fnr/gateway@sha256:" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	attested, err := provenance.Attest(image, build, key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := provenance.Verify(attested, image.DigestStr(), &key.PublicKey)
	want := build
	want.Program = "gateway"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-attested, +verified):\n%s", err, diff)
	}
	if _, err := provenance.Verify(attested, "sha256:1", &key.PublicKey); err == nil {
		t.Error("the provenance of one image counts for another one")
	}
	if _, err := provenance.Verify(attested, image.DigestStr(), &newKey(t).PublicKey); err == nil {
		t.Error("a provenance that another key has signed counts")
	}
	if _, err := provenance.Verify(signature.Empty(), image.DigestStr(), &key.PublicKey); err == nil {
		t.Error("an image without provenance counts")
	}
}

// TestEnvelope reads an attestation as in-toto's and DSSE's specifications have it.
func TestEnvelope(t *testing.T) {
	image, err := name.NewDigest("registry.example/fnr/gateway@sha256:" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	attested, err := provenance.Attest(image, build, key)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := attested.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layer := manifest.Layers[0]
	if layer.MediaType != "application/vnd.dsse.envelope.v1+json" ||
		layer.Annotations["predicateType"] != "https://slsa.dev/provenance/v1" {
		t.Errorf("the layer is a %s with %v", layer.MediaType, layer.Annotations)
	}
	content, err := signature.Layer(attested, layer)
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		PayloadType, Payload string
		Signatures           []struct{ Sig string }
	}
	if err := json.Unmarshal(content, &envelope); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	signed := fmt.Sprintf("DSSEv1 28 application/vnd.in-toto+json %d %s", len(payload), payload)
	if !signature.VerifyBytes([]byte(signed), envelope.Signatures[0].Sig, &key.PublicKey) {
		t.Error("the signature is not that of DSSE's encoding")
	}
	for _, want := range []string{
		`"_type":"https://in-toto.io/Statement/v1"`, `"gitCommit":"c0ffee"`, `"digest":{"sha256":"0000`,
		`"externalParameters":{"version":"v1","platforms":["linux/amd64"]}`,
	} {
		if !strings.Contains(string(payload), want) {
			t.Errorf("the statement has no %s:\n%s", want, payload)
		}
	}
}
