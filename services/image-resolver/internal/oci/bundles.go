// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"fmt"
)

// What cosign calls signatures in bundles, which are statements about images in envelopes.
const (
	bundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// emptyArtifact is what some registries take bundles for.
	emptyArtifact = "application/vnd.oci.empty.v1+json"
	// predicateAnnotation names what a bundle states, so that other statements need not be fetched.
	predicateAnnotation = "dev.sigstore.bundle.predicateType"
	signPredicate       = "https://sigstore.dev/cosign/sign/v1"
	statementType       = "https://in-toto.io/Statement/v1"
	envelopeType        = "application/vnd.in-toto+json"
)

// maxEnvelopeSignatures is how many signatures an envelope may have.
const maxEnvelopeSignatures = 10

// Bundle is a statement with signatures. It is only what a registry says until one is verified.
type Bundle struct {
	// Signed is the text that the values are signatures of.
	Signed []byte
	Values [][]byte
	// Certified reports whether the bundle has a certificate: it is not by a key of the signer then.
	Certified bool
	// Statement is what is signed, without its type.
	Statement []byte
}

// ParseBundle reads a bundle, and reports whether it is one with a statement.
func ParseBundle(raw []byte) (Bundle, bool) {
	var bundle struct {
		Material struct {
			Certificate      json.RawMessage `json:"certificate"`
			CertificateChain json.RawMessage `json:"x509CertificateChain"`
		} `json:"verificationMaterial"`
		Envelope struct {
			Payload    []byte `json:"payload"`
			Type       string `json:"payloadType"`
			Signatures list[struct {
				Value []byte `json:"sig"`
			}] `json:"signatures"`
		} `json:"dsseEnvelope"`
	}
	if len(raw) > MaxPayloadBytes || json.Unmarshal(raw, &bundle) != nil {
		return Bundle{}, false
	}
	e := bundle.Envelope
	if e.Type != envelopeType || len(e.Signatures) > maxEnvelopeSignatures {
		return Bundle{}, false
	}
	out := Bundle{Statement: e.Payload}
	out.Certified = bundle.Material.Certificate != nil || bundle.Material.CertificateChain != nil
	out.Signed = fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.Type), e.Type, len(e.Payload), e.Payload)
	for _, s := range e.Signatures {
		out.Values = append(out.Values, s.Value)
	}
	return out, true
}

// SignedDigests returns those of its statement.
func (b Bundle) SignedDigests() []string { return StatedDigests(b.Statement) }

// StatedDigests returns the digests of the images that a statement states to be signed; none if it states something
// else about them.
func StatedDigests(text []byte) []string {
	var statement struct {
		Type     string `json:"_type"`
		Subjects list[struct {
			Digest texts `json:"digest"`
		}] `json:"subject"`
		Predicate string `json:"predicateType"`
	}
	if json.Unmarshal(text, &statement) != nil || statement.Type != statementType ||
		statement.Predicate != signPredicate {
		return nil
	}
	var digests []string
	for _, subject := range statement.Subjects {
		if hex := subject.Digest["sha256"]; hex != "" {
			digests = append(digests, "sha256:"+hex)
		}
	}
	return digests
}
