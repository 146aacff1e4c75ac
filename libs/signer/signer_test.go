// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/signer"
)

func pemOf(t *testing.T, public any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// must returns the key of a generator.
func must[K any](t *testing.T) func(K, error) K {
	return func(key K, err error) K {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
}

func TestKeysVerifyTheirSignaturesOnly(t *testing.T) {
	ec := must[*ecdsa.PrivateKey](t)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		key  crypto.Signer
		hash crypto.Hash
	}{
		"cosign's default":       {ec(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), crypto.SHA256},
		"P-384 with SHA-256":     {ec(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), crypto.SHA256},
		"P-384 with its own":     {ec(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), crypto.SHA384},
		"P-521 with its own":     {ec(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)), crypto.SHA512},
		"RSA":                    {must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048)), crypto.SHA256},
		"Ed25519 without a hash": {edwards, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			content := []byte("what is signed")
			digest := content
			if tc.hash != 0 {
				h := tc.hash.New()
				h.Write(content)
				digest = h.Sum(nil)
			}
			signature, err := tc.key.Sign(rand.Reader, digest, tc.hash)
			if err != nil {
				t.Fatal(err)
			}
			keys, err := signer.ParsePEM([]byte(pemOf(t, tc.key.Public())))
			if err != nil || len(keys) != 1 {
				t.Fatalf("%d keys, %v", len(keys), err)
			}
			of := signer.NewContent(content)
			if !keys[0].Verify(of, signature) {
				t.Error("the signature is not verified")
			}
			if keys[0].Verify(signer.NewContent([]byte("other")), signature) || keys[0].Verify(of, signature[1:]) ||
				keys[0].Verify(of, nil) || (signer.Key{}).Verify(of, signature) {
				t.Error("something else is verified")
			}
		})
	}
}

func TestKeysThatAreRejected(t *testing.T) {
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	good := pemOf(t, key.Public())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	tests := map[string]struct{ text, says string }{
		"nothing":       {"", "it has no key"},
		"no PEM":        {"cosign.pub", "text that is not a PUBLIC KEY"},
		"something too": {good + "x", "text that is not a PUBLIC KEY"},
		"a private key": {secret, "it has a PRIVATE KEY"},
		"no key inside": {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "read the public key"},
		"short RSA": {
			pemOf(t, must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024)).Public()),
			"2048 to 8192 bits, and it has 1024",
		},
		"small curve": {
			pemOf(t, must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)).Public()), "P-256",
		},
		"no signing key": {
			pemOf(t, must[*ecdh.PrivateKey](t)(ecdh.X25519().GenerateKey(rand.Reader)).Public()), "only ECDSA, RSA and Ed25519",
		},
		"too many": {strings.Repeat(good, signer.MaxKeys+1), "more than 10 keys"},
	}
	for name, tc := range tests {
		if _, err := signer.ParsePEM([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
	if _, err := signer.ParseDER(make([]byte, signer.MaxKeyBytes+1)); err == nil {
		t.Error("a key that is too long was read")
	}
}
