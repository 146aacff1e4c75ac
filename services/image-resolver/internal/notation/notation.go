// SPDX-License-Identifier: Apache-2.0

// Package notation verifies signatures that notation makes, with notation-go: envelopes (JWS or COSE) with a
// certificate of an authority. It uses no network, so that it is not known whether a certificate is revoked.
package notation

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"

	"github.com/notaryproject/notation-core-go/signature"
	_ "github.com/notaryproject/notation-core-go/signature/cose" // for [signature.ParseEnvelope]
	_ "github.com/notaryproject/notation-core-go/signature/jws"  // for [signature.ParseEnvelope]
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/certified"
)

const (
	// store is the trust store with the authorities: certificates have to be valid now. Those of signing authorities,
	// which state the time themselves, and of timestamps are not trusted.
	store = "ca:policy"
	// reference stands for all images: the caller compares the digest.
	reference = "example.com/image@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// Verifier verifies signatures by a signer.
type Verifier struct{ verifier notation.Verifier }

// New returns a verifier.
func New(s *signer.Notation) (*Verifier, error) {
	authorities, err := s.Certificates()
	if err != nil {
		return nil, err
	}
	statement := trustpolicy.TrustPolicy{
		Name: "signer", RegistryScopes: []string{"*"}, TrustStores: []string{store},
		SignatureVerification: trustpolicy.SignatureVerification{
			VerificationLevel: trustpolicy.LevelStrict.Name,
			Override: map[trustpolicy.ValidationType]trustpolicy.ValidationAction{
				trustpolicy.TypeRevocation: trustpolicy.ActionSkip, // it needs the network
			},
		},
	}
	for _, subject := range s.Identities {
		statement.TrustedIdentities = append(statement.TrustedIdentities, "x509.subject:"+subject)
	}
	policy := &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{statement}}
	v, err := verifier.New(policy, trusted(authorities), nil)
	if err != nil {
		return nil, err
	}
	return &Verifier{v}, nil
}

// trusted are the certificates of authorities.
type trusted []*x509.Certificate

// GetCertificates implements notation's trust store.
func (t trusted) GetCertificates(_ context.Context, kind truststore.Type, _ string) ([]*x509.Certificate, error) {
	if kind != truststore.TypeCA {
		return nil, truststore.TrustStoreError{Msg: "only certificates of authorities are trusted"}
	}
	return t, nil
}

// Verify verifies an envelope.
func (v *Verifier) Verify(ctx context.Context, envelope []byte, mediaType string) (certified.Envelope, error) {
	target, err := targetOf(envelope, mediaType)
	if err != nil {
		return certified.Envelope{}, fmt.Errorf("it cannot be read: %w", err)
	}
	outcome, err := v.verifier.Verify(ctx, target, envelope, notation.VerifierVerifyOptions{
		ArtifactReference: reference, SignatureMediaType: mediaType,
	})
	if err != nil {
		if outcome != nil && outcome.EnvelopeContent != nil && len(outcome.EnvelopeContent.SignerInfo.CertificateChain) > 0 {
			return certified.Envelope{}, fmt.Errorf("its certificate is for %.200q: %w",
				outcome.EnvelopeContent.SignerInfo.CertificateChain[0].Subject, err)
		}
		return certified.Envelope{}, err
	}
	info := outcome.EnvelopeContent.SignerInfo
	signed := certified.Envelope{Digest: target.Digest.String(), Until: info.SignedAttributes.Expiry}
	for _, certificate := range info.CertificateChain {
		if signed.Until.IsZero() || certificate.NotAfter.Before(signed.Until) {
			signed.Until = certificate.NotAfter
		}
	}
	return signed, nil
}

// targetOf returns what an envelope states to be signed, which notation compares with what it verifies.
func targetOf(envelope []byte, mediaType string) (ocispec.Descriptor, error) {
	parsed, err := signature.ParseEnvelope(mediaType, envelope)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	content, err := parsed.Content()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	var payload struct {
		Target ocispec.Descriptor `json:"targetArtifact"`
	}
	err = json.Unmarshal(content.Payload.Content, &payload)
	return payload.Target, err
}
