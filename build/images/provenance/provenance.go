// SPDX-License-Identifier: Apache-2.0

// Package provenance says from what an image was built, in SLSA's form and signed as cosign attests it.
package provenance

import (
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"

	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// Types of what is attested, by in-toto, DSSE and SLSA.
const (
	envelopeType  = "application/vnd.dsse.envelope.v1+json"
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
)

// Repository is where the sources are.
const Repository = "https://github.com/krm-function-runner/function-runner"

// Build describes a build.
type Build struct {
	// Program is what was built; it is the last part of the name that the image has.
	Program string `json:"-"`
	// Version and Platforms are what the build was called with.
	Version   string   `json:"version"`
	Platforms []string `json:"platforms"`
	// Revision is the commit of the sources.
	Revision string `json:"-"`
	// Tools are the versions of the programs that took part, by name.
	Tools map[string]string `json:"-"`
	// SBOMs are the digests of the images that have the lists of modules.
	SBOMs []string `json:"-"`
}

type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   Build             `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters,omitempty"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
		Byproducts []subject `json:"byproducts,omitempty"`
	} `json:"runDetails"`
}

type envelope struct {
	PayloadType string        `json:"payloadType"`
	Payload     string        `json:"payload"`
	Signatures  []dsseSigning `json:"signatures"`
}

type dsseSigning struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// Attest returns the attestation of an image: the same for the same build.
func Attest(image name.Digest, build Build, key *ecdsa.PrivateKey) (v1.Image, error) {
	content, err := seal(describe(image, build), key)
	if err != nil {
		return nil, fmt.Errorf("attest %s: %w", image, err)
	}
	return mutate.Append(signature.Empty(), mutate.Addendum{
		Layer: static.NewLayer(content, envelopeType),
		Annotations: map[string]string{
			"predicateType":                      predicateType,
			"dev.cosignproject.cosign/signature": "", // it is in the envelope
		},
	})
}

// seal returns the signed envelope of a statement.
func seal(s statement, key *ecdsa.PrivateKey) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	signed, err := signature.Bytes(encoding(payload), key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{
		PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload),
		Signatures: []dsseSigning{{Sig: signed}},
	})
}

func describe(image name.Digest, build Build) statement {
	s := statement{Type: statementType, PredicateType: predicateType, Subject: []subject{{
		Name: image.Context().Name(), Digest: digest(image.DigestStr()),
	}}}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = Repository + "/blob/main/docs/releases.md"
	definition.ExternalParameters, definition.InternalParameters = build, build.Tools
	definition.ResolvedDependencies = []subject{{
		URI: "git+" + Repository, Digest: map[string]string{"gitCommit": build.Revision},
	}}
	s.Predicate.RunDetails.Builder.ID = Repository + "/tree/main/build/images"
	for _, sbom := range build.SBOMs {
		s.Predicate.RunDetails.Byproducts = append(s.Predicate.RunDetails.Byproducts,
			subject{Name: "SBOM", Digest: digest(sbom)})
	}
	return s
}

func digest(of string) map[string]string {
	algorithm, hex, _ := strings.Cut(of, ":")
	return map[string]string{algorithm: hex}
}

// encoding is what DSSE signs of a payload.
func encoding(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// Verify returns what the attestation of an image says: its program and version, the commit of its sources, and its
// SBOMs. It is an error unless one of the attestations is signed with the key, and is about an image with the digest.
func Verify(attestations v1.Image, of string, key *ecdsa.PublicKey) (Build, error) {
	manifest, err := attestations.Manifest()
	if err != nil {
		return Build{}, fmt.Errorf("read the provenance of %s: %w", of, err)
	}
	for _, layer := range manifest.Layers {
		content, err := signature.Layer(attestations, layer)
		if err != nil {
			return Build{}, fmt.Errorf("read the provenance of %s: %w", of, err)
		}
		s, ok := open(content, key)
		if ok && s.PredicateType == predicateType && len(s.Subject) == 1 && slices.Contains(digests(s.Subject), of) {
			return s.build(), nil
		}
	}
	return Build{}, fmt.Errorf("%s has no provenance that is signed with the key: "+
		"do not use it, or name the key of its release", of)
}

// open returns the statement of an envelope that is signed with the key.
func open(content []byte, key *ecdsa.PublicKey) (s statement, ok bool) {
	var e envelope
	if json.Unmarshal(content, &e) != nil || e.PayloadType != payloadType {
		return statement{}, false
	}
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return statement{}, false
	}
	signed := slices.ContainsFunc(e.Signatures, func(s dsseSigning) bool {
		return signature.VerifyBytes(encoding(payload), s.Sig, key)
	})
	return s, signed && json.Unmarshal(payload, &s) == nil
}

func (s statement) build() Build {
	build := s.Predicate.BuildDefinition.ExternalParameters
	build.Program = path.Base(s.Subject[0].Name)
	build.Tools = s.Predicate.BuildDefinition.InternalParameters
	for _, source := range s.Predicate.BuildDefinition.ResolvedDependencies {
		build.Revision = source.Digest["gitCommit"]
	}
	build.SBOMs = digests(s.Predicate.RunDetails.Byproducts)
	return build
}

func digests(subjects []subject) []string {
	var found []string
	for _, s := range subjects {
		for algorithm, hex := range s.Digest {
			found = append(found, algorithm+":"+hex)
		}
	}
	return found
}
