// SPDX-License-Identifier: Apache-2.0

// Package cosigned signs images in registries of the test bed, in the format of `cosign sign --key`, and writes
// policies that require such signatures.
package cosigned

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Key is a key of a signer.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey returns a new key.
func NewKey(t testing.TB) Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{private}
}

// Public is the public key, as PEM.
func (k Key) Public(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// Push pushes a copy of an image with a label, which changes its digest, and returns the digest.
func Push(t testing.TB, of, as, label string) string {
	t.Helper()
	original, err := remote.Image(reference(t, of), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	config, err := original.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"e2e": label}
	image, err := mutate.ConfigFile(original, config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, as, image)
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// Sign signs the digest of an image, and puts the signature into a repository, where cosign looks for signatures of the
// digest beside. Beside is usually the same digest.
func (k Key) Sign(t testing.TB, repository, digest, beside string) {
	t.Helper()
	payload := []byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":"` + digest +
		`"},"type":"cosign container image signature"},"optional":null}`)
	hash := sha256.Sum256(payload)
	signature, err := k.private.Sign(rand.Reader, hash[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	signatures, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, repository+":"+strings.Replace(beside, ":", "-", 1)+".sig", signatures)
}

// Policy returns a ConfigMap with a policy that allows images of patterns if they are signed by the key, and what
// further rules, as YAML, allow.
func (k Key) Policy(t testing.TB, namespace, configMap, pattern string, further ...string) *unstructured.Unstructured {
	t.Helper()
	rules := append([]string{"{name: signed, images: ['" + pattern + "'], action: allow, signers: [release]}"}, further...)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": configMap, "namespace": namespace},
		"data": map[string]any{
			"policy.yaml": "default: deny\nsigners: [{name: release, keyFiles: [cosign.pub]}]\nrules:\n- " +
				strings.Join(rules, "\n- ") + "\n",
			"cosign.pub": k.Public(t),
		},
	}}
}

func write(t testing.TB, as string, image v1.Image) {
	t.Helper()
	if err := remote.Write(reference(t, as), image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// reference returns an image of a registry without TLS.
func reference(t testing.TB, image string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
