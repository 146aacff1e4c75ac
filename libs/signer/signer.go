// SPDX-License-Identifier: Apache-2.0

// Package signer has the signers of images: it reads and checks what is trusted of them, and verifies signatures by
// public keys as cosign makes them. It uses no network and no clock: a key is trusted until it is removed. Signatures
// by certificates are verified by the image-resolver.
package signer

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha256" // for crypto.SHA256
	_ "crypto/sha512" // for crypto.SHA384 and crypto.SHA512
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Bounds of signers.
const (
	// MaxSigners is how many signers may be trusted, and MaxKeys how many keys each may have.
	MaxSigners = 20
	MaxKeys    = 10
	// MaxNameBytes is how long the name of a signer may be.
	MaxNameBytes = 63
	// MaxKeyBytes is how long a key may be in DER: an RSA key of 8192 bits has about 1,100 bytes.
	MaxKeyBytes = 1200
)

// Sizes of RSA keys, in bits.
const (
	minRSA = 2048
	maxRSA = 8192
)

// Signer is a signer of one kind.
type Signer struct {
	Name string
	// Keys are public keys, of which each may sign.
	Keys []Key
	// Keyless is a signer whose certificates are for some minutes, and whose signatures are in a log; nil for others.
	Keyless *Keyless
	// Notation is a signer with certificates of an authority; nil for others.
	Notation *Notation
}

// Key is a public key.
type Key struct {
	// DER is the key as SubjectPublicKeyInfo.
	DER    []byte
	public crypto.PublicKey
}

// ParsePEM reads the keys in a text such as that of a cosign.pub.
func ParsePEM(text []byte) ([]Key, error) {
	var keys []Key
	block, rest := pem.Decode(text)
	for ; block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("it has a %s: give a PUBLIC KEY in PEM, such as the content of cosign.pub", block.Type)
		}
		key, err := ParseDER(block.Bytes)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, key); len(keys) > MaxKeys {
			return nil, fmt.Errorf("it has more than %d keys", MaxKeys)
		}
	}
	switch {
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("it has text that is not a PUBLIC KEY in PEM")
	case len(keys) == 0:
		return nil, errors.New("it has no key: give a PUBLIC KEY in PEM, such as the content of cosign.pub")
	}
	return keys, nil
}

// ParseDER reads one key. DER is kept.
func ParseDER(der []byte) (Key, error) {
	if len(der) > MaxKeyBytes {
		return Key{}, fmt.Errorf("the key has %d bytes, and may have up to %d", len(der), MaxKeyBytes)
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return Key{}, fmt.Errorf("read the public key: %w", err)
	}
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P224() {
			return Key{}, errors.New("ECDSA keys have to be of the curve P-256, P-384 or P-521")
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return Key{}, fmt.Errorf("RSA keys have to have %d to %d bits, and it has %d", minRSA, maxRSA, bits)
		}
	case ed25519.PublicKey:
	default:
		return Key{}, fmt.Errorf("it is a %T: only ECDSA, RSA and Ed25519 keys are supported", public)
	}
	return Key{DER: der, public: public}, nil
}

// Content is what may be signed, with its hashes: many keys and signatures are compared with each. One goroutine uses
// it.
type Content struct {
	bytes  []byte
	hashes map[crypto.Hash][]byte // each when it is needed
}

// NewContent returns a content, which must not change.
func NewContent(bytes []byte) *Content {
	return &Content{bytes: bytes, hashes: make(map[crypto.Hash][]byte)}
}

// Bytes returns the content itself.
func (c *Content) Bytes() []byte { return c.bytes }

// hash returns a hash of the content.
func (c *Content) hash(by crypto.Hash) []byte {
	if c.hashes[by] == nil {
		h := by.New()
		h.Write(c.bytes)
		c.hashes[by] = h.Sum(nil)
	}
	return c.hashes[by]
}

// Verify reports whether a signature is that of the content by the key. ECDSA and RSA keys (PKCS #1 v1.5) sign
// the SHA-256 hash, and ECDSA keys of larger curves also that of their size.
func (k Key) Verify(content *Content, signature []byte) bool {
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(public, content.hash(crypto.SHA256), signature) || verifyLarge(public, content, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, content.hash(crypto.SHA256), signature) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(public, content.bytes, signature)
	default:
		return false
	}
}

// verifyLarge verifies signatures of hashes that are as large as the curve.
func verifyLarge(key *ecdsa.PublicKey, content *Content, signature []byte) bool {
	switch key.Curve {
	case elliptic.P384():
		return ecdsa.VerifyASN1(key, content.hash(crypto.SHA384), signature)
	case elliptic.P521():
		return ecdsa.VerifyASN1(key, content.hash(crypto.SHA512), signature)
	default:
		return false
	}
}
