// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// What cosign calls its signatures.
const (
	// signatureArtifact is the type of an artifact with signatures, as its index or its configuration has it.
	signatureArtifact = "application/vnd.dev.cosign.artifact.sig.v1+json"
	// payloadMediaType is the type of a layer that is signed, and signatureAnnotation has its signature.
	payloadMediaType    = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	payloadKind         = "cosign container image signature"
	// These annotations have what proves who has signed without a key.
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	logAnnotation         = "dev.sigstore.cosign/bundle"
	timestampAnnotation   = "dev.sigstore.cosign/rfc3161timestamp"
)

// What notation calls its signatures.
const (
	notationArtifact = "application/vnd.cncf.notary.signature"
	jwsMediaType     = "application/jose+json"
	coseMediaType    = "application/cose"
)

// signatureArtifacts are the types of artifacts that may have cosign's signatures.
var signatureArtifacts = []string{signatureArtifact, bundleMediaType, emptyArtifact}

// Bounds of signatures.
const (
	// MaxSignatures is how many signatures an artifact may have.
	MaxSignatures = 100
	// MaxPayloadBytes is how large a payload may be: it has the name and the digest of an image.
	MaxPayloadBytes = 64 << 10
	// MaxArtifacts is how many artifacts with signatures an image may have.
	MaxArtifacts = 50
	// maxSignatureBytes bounds a signature: that of an RSA key of 8192 bits has 1 KiB.
	maxSignatureBytes = 2 << 10
)

// Signature is a signature of an image. It is only what a registry says until it is verified.
type Signature struct {
	// Payload is the digest of the text that is signed, or of a bundle or an envelope that has it.
	Payload string
	// Bundle reports whether it is one.
	Bundle bool
	// Envelope is the media type of notation's envelopes; empty for others.
	Envelope string
	// Value is the signature of the text; nil if it is not in cosign's form, or in the bundle or the envelope.
	Value []byte
	// Certificate is the signer's certificate beside a value, Log its entry in a log, and Timestamp that of an
	// authority; empty if there is none.
	Certificate, Log, Timestamp string
}

// SignatureTag returns the tag at which cosign stores the signatures of a digest.
func SignatureTag(digest string) string { return ReferrersTag(digest) + ".sig" }

// ReferrersTag returns the tag with the list of what refers to a digest, for registries without an API for it.
func ReferrersTag(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// signatureLayer is a layer of an artifact with signatures.
type signatureLayer struct {
	MediaType   string  `json:"mediaType"`
	Digest      v1.Hash `json:"digest"`
	Size        int64   `json:"size"`
	Annotations texts   `json:"annotations"`
}

// ParseSignatures reads the manifest of an artifact with signatures.
func ParseSignatures(raw []byte) ([]Signature, error) {
	var artifact struct {
		Layers      list[signatureLayer] `json:"layers"`
		Annotations texts                `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &artifact); err != nil {
		return nil, invalidSignatures(err)
	}
	var out []Signature
	for i := range artifact.Layers {
		signature, ok, err := artifact.Layers[i].signature(maySign(artifact.Annotations))
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, signature)
		}
	}
	if len(out) > MaxSignatures {
		return nil, fault.New(fault.Precondition,
			"there are more than %d signatures in one artifact, which is the limit: remove some", MaxSignatures)
	}
	return out, nil
}

// signature returns the signature in a layer, and reports whether there is one. Bundles that are too large state
// something else.
func (l *signatureLayer) signature(bundles bool) (s Signature, ok bool, err error) {
	s.Payload = l.Digest.String()
	text, signed := l.Annotations[signatureAnnotation]
	switch {
	case l.MediaType == bundleMediaType:
		s.Bundle = true
		return s, bundles && l.Size <= MaxPayloadBytes, nil
	case l.MediaType == jwsMediaType, l.MediaType == coseMediaType:
		s.Envelope = l.MediaType
	case l.MediaType != payloadMediaType || !signed:
		return s, false, nil
	}
	if l.Size > MaxPayloadBytes {
		return s, false, fault.New(fault.Precondition,
			"a signature is of %d bytes, and only up to %d are read: sign the image again", l.Size, MaxPayloadBytes)
	}
	if s.Envelope == "" {
		s.Value, s.Certificate = decodeSignature(text), l.Annotations[certificateAnnotation]
		s.Log, s.Timestamp = l.Annotations[logAnnotation], l.Annotations[timestampAnnotation]
	}
	return s, true, nil
}

// decodeSignature returns the bytes of a signature in an annotation; nil if there are none.
func decodeSignature(text string) []byte {
	if len(text) > base64.StdEncoding.EncodedLen(maxSignatureBytes) {
		return nil
	}
	value, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return value
}

// ParseReferrers reads the index of what refers to an image, and returns the digests of artifacts with signatures: with
// those of cosign, and with those of notation if they are wanted.
func ParseReferrers(raw []byte, notation bool) ([]string, error) {
	var index struct {
		Manifests list[struct {
			ArtifactType string  `json:"artifactType"`
			Digest       v1.Hash `json:"digest"`
			Annotations  texts   `json:"annotations"`
		}] `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, invalidSignatures(err)
	}
	var digests []string
	for _, d := range index.Manifests {
		if notation && d.ArtifactType == notationArtifact ||
			slices.Contains(signatureArtifacts, d.ArtifactType) && maySign(d.Annotations) {
			digests = append(digests, d.Digest.String())
		}
	}
	if len(digests) > MaxArtifacts {
		return nil, TooManyArtifacts(len(digests))
	}
	return digests, nil
}

// TooManyArtifacts is the error for an image with more artifacts than are read.
func TooManyArtifacts(n int) error {
	return fault.New(fault.Precondition,
		"there are %d artifacts with signatures, and only up to %d are read: remove some", n, MaxArtifacts)
}

// maySign reports whether a bundle with these annotations may be a signature: others state something else.
func maySign(annotations texts) bool {
	predicate, known := annotations[predicateAnnotation]
	return !known || predicate == signPredicate
}

// SignedDigests returns the digest of the image that a payload is about; none if it is about none.
func SignedDigests(payload []byte) []string {
	if len(payload) > MaxPayloadBytes {
		return nil
	}
	var signed struct {
		Critical struct {
			Image struct {
				Digest v1.Hash `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	if json.Unmarshal(payload, &signed) != nil || signed.Critical.Type != payloadKind {
		return nil
	}
	if signed.Critical.Image.Digest.Hex == "" {
		return nil
	}
	return []string{signed.Critical.Image.Digest.String()}
}

// invalidSignatures is the error for a document about signatures that cannot be read.
func invalidSignatures(err error) error {
	return fault.New(fault.Precondition, "the manifest of the signatures is not valid: %s: sign the image again",
		excerpt.Middle(err.Error(), maxQuoted))
}
