// SPDX-License-Identifier: Apache-2.0

package keyless

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/certified"
)

// bundleType is the type of bundles whose log entries have a promise instead of a proof, as those of cosign 2 do.
const bundleType = "application/vnd.dev.sigstore.bundle+json;version=0.1"

// bundleOf returns a signature of a payload as a bundle.
func bundleOf(payload, signature []byte, p certified.Proof) (*bundle.Bundle, error) {
	block, _ := pem.Decode([]byte(p.Certificate))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("its certificate cannot be read")
	}
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_X509CertificateChain{
		X509CertificateChain: &common.X509CertificateChain{Certificates: []*common.X509Certificate{{RawBytes: block.Bytes}}},
	}}
	if p.Log != "" {
		entry, err := parseLog(p.Log)
		if err != nil {
			return nil, fmt.Errorf("its log entry cannot be read: %w", err)
		}
		material.TlogEntries = []*rekor.TransparencyLogEntry{entry}
	}
	if p.Timestamp != "" {
		stamp, err := parseTimestamp(p.Timestamp)
		if err != nil {
			return nil, fmt.Errorf("its timestamp cannot be read: %w", err)
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*common.RFC3161SignedTimestamp{{SignedTimestamp: stamp}},
		}
	}
	hash := sha256.Sum256(payload)
	return bundle.NewBundle(&protobundle.Bundle{
		MediaType: bundleType, VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &common.MessageSignature{
			MessageDigest: &common.HashOutput{Algorithm: common.HashAlgorithm_SHA2_256, Digest: hash[:]},
			Signature:     signature,
		}},
	})
}

// parseLog reads an entry of a log, as cosign 2 writes it.
func parseLog(text string) (*rekor.TransparencyLogEntry, error) {
	var log struct {
		Promise []byte `json:"SignedEntryTimestamp"`
		Payload struct {
			Body  []byte `json:"body"`
			Time  int64  `json:"integratedTime"`
			Index int64  `json:"logIndex"`
			ID    string `json:"logID"`
		} `json:"Payload"`
	}
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(log.Payload.ID)
	if err != nil || len(id) == 0 || len(log.Promise) == 0 {
		return nil, errors.New("it has no log, or no promise of it")
	}
	var body struct {
		Version string `json:"apiVersion"`
		Kind    string `json:"kind"`
	}
	if err := json.Unmarshal(log.Payload.Body, &body); err != nil {
		return nil, err
	}
	return &rekor.TransparencyLogEntry{
		LogIndex: log.Payload.Index, LogId: &common.LogId{KeyId: id}, IntegratedTime: log.Payload.Time,
		KindVersion:       &rekor.KindVersion{Kind: body.Kind, Version: body.Version},
		InclusionPromise:  &rekor.InclusionPromise{SignedEntryTimestamp: log.Promise},
		CanonicalizedBody: log.Payload.Body,
	}, nil
}

// parseTimestamp reads the timestamp of an authority, as cosign 2 writes it.
func parseTimestamp(text string) ([]byte, error) {
	var stamp struct {
		Signed []byte `json:"SignedRFC3161Timestamp"`
	}
	if err := json.Unmarshal([]byte(text), &stamp); err != nil {
		return nil, err
	}
	if len(stamp.Signed) == 0 {
		return nil, errors.New("it is empty")
	}
	return stamp.Signed, nil
}
