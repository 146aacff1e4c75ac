// SPDX-License-Identifier: Apache-2.0

package signature_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// TestSignaturesAreCosigns signs an image with two keys, and reads both as cosign's specification of signatures
// has it.
func TestSignaturesAreCosigns(t *testing.T) {
	image := named(t)
	first, second := newKey(t), newKey(t)
	signatures := signature.Empty()
	for _, key := range []*ecdsa.PrivateKey{first, second, first} {
		var err error
		if signatures, err = signature.Add(signatures, image, key); err != nil {
			t.Fatal(err)
		}
	}
	manifest, err := signatures.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || len(manifest.Layers) != 2 {
		t.Fatalf("the manifest is a %s with %d layers, want OCI's with a layer for each key",
			manifest.MediaType, len(manifest.Layers))
	}
	for i, key := range []*ecdsa.PrivateKey{first, second} {
		verify(t, signatures, manifest.Layers[i], &key.PublicKey, image)
	}
	if tag := signature.Tag("sha256:0f", "sig"); tag != "sha256-0f.sig" {
		t.Errorf("the signatures are at %s", tag)
	}
}

// TestVerify knows a signature of the key among others, for the digest, in any repository.
func TestVerify(t *testing.T) {
	image, key, other := named(t), newKey(t), newKey(t)
	var signatures v1.Image
	signatures, err := signature.Add(signature.Empty(), image, other)
	if err == nil {
		signatures, err = signature.Add(signatures, image, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []*ecdsa.PrivateKey{key, other} {
		if err := signature.Verify(signatures, image.DigestStr(), &known.PublicKey); err != nil {
			t.Errorf("a signature is not found: %v", err)
		}
	}
	another := "sha256:" + strings.Repeat("1", 64)
	if err := signature.Verify(signatures, another, &key.PublicKey); err == nil {
		t.Error("the signature of one image counts for another one")
	}
	if err := signature.Verify(signatures, image.DigestStr(), &newKey(t).PublicKey); err == nil {
		t.Error("signatures of other keys count")
	}
	if err := signature.Verify(signature.Empty(), image.DigestStr(), &key.PublicKey); err == nil {
		t.Error("an image without a signature counts as signed")
	}
}

func verify(t *testing.T, signatures v1.Image, layer v1.Descriptor, key *ecdsa.PublicKey, image name.Digest) {
	t.Helper()
	if layer.MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" {
		t.Errorf("the layer is a %s", layer.MediaType)
	}
	blob, err := signatures.LayerByDigest(layer.Digest)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := blob.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(layer.Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(content)
	if !ecdsa.VerifyASN1(key, hash[:], raw) {
		t.Error("the signature is not that of the payload")
	}
	var payload struct {
		Critical struct {
			Identity map[string]string
			Image    map[string]string
			Type     string
		}
	}
	if err := json.Unmarshal(content, &payload); err != nil {
		t.Fatal(err)
	}
	critical := payload.Critical
	if critical.Image["docker-manifest-digest"] != image.DigestStr() ||
		critical.Identity["docker-reference"] != image.Context().Name() ||
		critical.Type != "cosign container image signature" {
		t.Errorf("signed is %s, want the digest %s", content, image)
	}
}

// TestKeyFiles reads keys in the forms in which openssl writes them.
func TestKeyFiles(t *testing.T) {
	key := newKey(t)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	tests := map[string]struct {
		content string
		valid   bool
		reason  string
	}{
		"genpkey":   {encode("PRIVATE KEY", pkcs8), true, "PKCS #8"},
		"ecparam":   {encode("EC PARAMETERS", []byte{6, 0}) + encode("EC PRIVATE KEY", sec1), true, "SEC 1, after the curve"},
		"encrypted": {encode("ENCRYPTED SIGSTORE PRIVATE KEY", pkcs8), false, "it needs a password"},
		"no PEM":    {"key", false, "it is no key"},
		"damaged":   {encode("PRIVATE KEY", pkcs8[:10]), false, "it is no key"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := signature.ReadKey(path)
			if (err == nil) != tc.valid || tc.valid && !got.Equal(key) {
				t.Errorf("ReadKey = %v, want valid %t: %s", err, tc.valid, tc.reason)
			}
			if _, err := signature.ReadPublicKey(path); err == nil {
				t.Error("it counts as a public key")
			}
			if err != nil && !strings.Contains(err.Error(), "openssl genpkey") {
				t.Errorf("the error does not name what to do: %v", err)
			}
		})
	}
}

// TestPublicKeyFile reads a key in the form in which openssl writes it.
func TestPublicKeyFile(t *testing.T) {
	key := newKey(t)
	encoded, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: encoded}), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := signature.ReadPublicKey(path); err != nil || !got.Equal(&key.PublicKey) {
		t.Errorf("ReadPublicKey = %v, %v", got, err)
	}
}

// named returns the name of an image.
func named(t *testing.T) name.Digest {
	t.Helper()
	digest, err := name.NewDigest("registry.example/fnr/gateway@sha256:" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
