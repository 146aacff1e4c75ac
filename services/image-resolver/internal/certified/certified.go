// SPDX-License-Identifier: Apache-2.0

// Package certified is what verifies signatures by certificates, as a resolver sees it. The verifiers themselves need
// many modules, which programs without policies do without.
package certified

import (
	"context"
	"errors"
	"time"

	"github.com/krm-function-runner/function-runner/libs/signer"
)

// ErrNoCertificate is the error for a signature without a certificate: it is one by a key.
var ErrNoCertificate = errors.New("the signature has no certificate")

// Verifiers make verifiers of what is trusted.
type Verifiers struct {
	// Keyless returns one of the signatures that count with sigstore's trusted_root.json.
	Keyless func(trustedRoot []byte) (Keyless, error)
	// Notation returns one of the signatures by a signer.
	Notation func(*signer.Notation) (Notation, error)
}

// Keyless verifies signatures that cosign makes without a key of the signer.
type Keyless interface {
	// VerifyBundle verifies a bundle with a statement, as cosign 3 writes it.
	VerifyBundle(raw []byte) (Identity, error)
	// VerifyPayload verifies the signature of a payload, as cosign 2 writes it.
	VerifyPayload(payload, signature []byte, p Proof) (Identity, error)
}

// Identity is whose signature is verified.
type Identity struct {
	// Issuer and Subject are whom the certificate is for.
	Issuer, Subject string
	// Text is what is signed.
	Text []byte
}

// Proof is what cosign 2 has beside a signature, in annotations. Intermediate certificates count only if the trusted
// root has them.
type Proof struct {
	// Certificate is the signer's certificate in PEM.
	Certificate string
	// Log is the entry in a transparency log with the log's promise, in JSON; empty without one.
	Log string
	// Timestamp is that of an authority, in JSON; empty without one.
	Timestamp string
}

// Notation verifies signatures that notation makes.
type Notation interface {
	// Verify verifies an envelope.
	Verify(ctx context.Context, envelope []byte, mediaType string) (Envelope, error)
}

// Envelope is a signature of notation that is verified.
type Envelope struct {
	// Digest is that of the image that is signed.
	Digest string
	// Until is when the signature expires, or a certificate does.
	Until time.Time
}
