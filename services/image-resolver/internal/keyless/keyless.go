// SPDX-License-Identifier: Apache-2.0

// Package keyless verifies signatures that cosign makes without a key of the signer: with a certificate of some
// minutes for an identity, and an entry in a transparency log. It uses sigstore-go, a trusted root that is given, and
// no network.
package keyless

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/certified"
)

// statementType is what the envelope of a bundle has to have.
const statementType = "application/vnd.in-toto+json"

// Root is a trusted root: the authorities whose certificates count, and the logs.
type Root struct {
	material *root.TrustedRoot
	verifier *verify.Verifier
}

// NewRoot reads sigstore's trusted_root.json. A certificate has to be in one of its certificate transparency logs, if
// it has some; a signature has to be in one of its logs.
func NewRoot(text []byte) (*Root, error) {
	material, err := root.NewTrustedRootFromJSON(text)
	if err != nil {
		return nil, err
	}
	options := []verify.VerifierOption{
		verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1),
	}
	if len(material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	verifier, err := verify.NewVerifier(material, options...)
	if err != nil {
		return nil, err
	}
	return &Root{material: material, verifier: verifier}, nil
}

// VerifyBundle verifies a bundle with a statement, as cosign 3 writes it.
func (r *Root) VerifyBundle(raw []byte) (certified.Identity, error) {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(raw); err != nil {
		return certified.Identity{}, fmt.Errorf("it cannot be read: %w", err)
	}
	signed, err := r.verify(&b, verify.WithoutArtifactUnsafe()) // the caller compares the statement's digests
	if err != nil {
		return certified.Identity{}, err
	}
	envelope, err := b.Envelope()
	if err != nil {
		return certified.Identity{}, err
	}
	if envelope.PayloadType != statementType {
		return certified.Identity{}, fmt.Errorf("its envelope has the type %.100q", envelope.PayloadType)
	}
	signed.Text, err = envelope.DecodeB64Payload()
	return signed, err
}

// VerifyPayload verifies the signature of a payload, as cosign 2 writes it.
func (r *Root) VerifyPayload(payload, signature []byte, p certified.Proof) (certified.Identity, error) {
	converted, err := bundleOf(payload, signature, p)
	if err != nil {
		return certified.Identity{}, err
	}
	signed, err := r.verify(converted, verify.WithArtifact(bytes.NewReader(payload)))
	signed.Text = payload
	return signed, err
}

// verify verifies a bundle, and returns whom its certificate is for.
func (r *Root) verify(b *bundle.Bundle, of verify.ArtifactPolicyOption) (certified.Identity, error) {
	content, err := b.VerificationContent()
	if err != nil {
		return certified.Identity{}, err
	}
	certificate := content.Certificate()
	if certificate == nil {
		return certified.Identity{}, certified.ErrNoCertificate
	}
	if entries, err := b.TlogEntries(); err != nil || len(entries) == 0 {
		return certified.Identity{}, errors.Join(errors.New("it is in no transparency log"), err)
	}
	if err := r.checkAuthority(certificate); err != nil {
		return certified.Identity{}, err
	}
	result, err := r.verifier.Verify(b, verify.NewPolicy(of, verify.WithoutIdentitiesUnsafe())) // the caller compares them
	if err != nil {
		return certified.Identity{}, err
	}
	found := result.Signature.Certificate
	if found == nil {
		return certified.Identity{}, certified.ErrNoCertificate
	}
	return certified.Identity{Issuer: found.Issuer, Subject: found.SubjectAlternativeName}, nil
}

// checkAuthority words the two most frequent reasons why a certificate does not count. All of it is verified
// afterwards, at the time of the signature.
func (r *Root) checkAuthority(certificate *x509.Certificate) error {
	var ended time.Time
	for _, authority := range r.material.FulcioCertificateAuthorities() {
		known, ok := authority.(*root.FulcioCertificateAuthority)
		if !ok || !issued(known, certificate) {
			continue
		}
		if end := known.ValidityPeriodEnd; end.IsZero() || !end.Before(certificate.NotBefore) {
			return nil
		}
		ended = known.ValidityPeriodEnd
	}
	if !ended.IsZero() {
		return fmt.Errorf("its certificate is by an authority that the trusted root trusts until %s only, "+
			"and of %s: update the trusted root",
			ended.UTC().Format(time.RFC3339), certificate.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("its certificate is by the authority %.200q, which the trusted root does not have",
		certificate.Issuer)
}

// issued reports whether an authority has issued a certificate.
func issued(by *root.FulcioCertificateAuthority, certificate *x509.Certificate) bool {
	for _, issuer := range append([]*x509.Certificate{by.Root}, by.Intermediates...) {
		if bytes.Equal(issuer.RawSubject, certificate.RawIssuer) && certificate.CheckSignatureFrom(issuer) == nil {
			return true
		}
	}
	return false
}
