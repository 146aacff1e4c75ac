// SPDX-License-Identifier: Apache-2.0

// Package testsign signs images in tests, as cosign does without a key and as notation does.
package testsign

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Sigstore is an authority for certificates of identities, and a log.
type Sigstore struct{ virtual *ca.VirtualSigstore }

// NewSigstore returns one with keys of its own.
func NewSigstore(t testing.TB) *Sigstore {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	check(t, err)
	return &Sigstore{virtual}
}

// RootOptions are what is special in a trusted root.
type RootOptions struct {
	// Until is when the authority is not trusted any more; zero for later.
	Until time.Time
	// CertificateLog requires certificates to be in a certificate transparency log, in which they are not.
	CertificateLog bool
}

// TrustedRoot returns the trusted_root.json.
func (s *Sigstore) TrustedRoot(t testing.TB, options RootOptions) []byte {
	t.Helper()
	authority := *s.virtual.FulcioCertificateAuthorities()[0].(*root.FulcioCertificateAuthority)
	if !options.Until.IsZero() {
		authority.ValidityPeriodEnd = options.Until
	}
	var certificates map[string]*root.TransparencyLog
	if options.CertificateLog {
		certificates = logs(t, s.virtual.CTLogs())
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{&authority},
		certificates, s.virtual.TimestampingAuthorities(), logs(t, s.virtual.RekorLogs()))
	check(t, err)
	text, err := trusted.MarshalJSON()
	check(t, err)
	return text
}

// logs returns logs whose IDs are bytes.
func logs(t testing.TB, from map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	t.Helper()
	for id, log := range from {
		raw, err := hex.DecodeString(id)
		check(t, err)
		log.ID = raw
	}
	return from
}

// Signature is a signature of a payload in the form of cosign 2.
type Signature struct{ Value, Certificate, Log string }

// Sign signs a payload for a subject of an issuer.
func (s *Sigstore) Sign(t testing.TB, subject, issuer, payload string) Signature {
	t.Helper()
	entity, err := s.virtual.SignWithVersion(subject, issuer, []byte(payload), "v0.1")
	check(t, err)
	content, err := entity.SignatureContent()
	check(t, err)
	entry := s.entry(t, entity)
	log, err := json.Marshal(map[string]any{
		"SignedEntryTimestamp": entry.GetInclusionPromise().GetSignedEntryTimestamp(),
		"Payload": map[string]any{
			"body": entry.GetCanonicalizedBody(), "integratedTime": entry.GetIntegratedTime(),
			"logIndex": entry.GetLogIndex(), "logID": hex.EncodeToString(entry.GetLogId().GetKeyId()),
		},
	})
	check(t, err)
	return Signature{
		Value:       base64.StdEncoding.EncodeToString(content.Signature()),
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(t, entity)})),
		Log:         string(log),
	}
}

// Bundle signs a statement about a digest, in the form of cosign 3.
func (s *Sigstore) Bundle(t testing.TB, subject, issuer, digest, predicate string) *protobundle.Bundle {
	t.Helper()
	statement := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],`+
		`"predicateType":%q,"predicate":{}}`, strings.TrimPrefix(digest, "sha256:"), predicate)
	entity, err := s.virtual.AttestAtTime(subject, issuer, []byte(statement), time.Now().Add(time.Minute), true)
	check(t, err)
	content, err := entity.SignatureContent()
	check(t, err)
	return &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_Certificate{
				Certificate: &common.X509Certificate{RawBytes: certificate(t, entity)},
			},
			TlogEntries: []*rekor.TransparencyLogEntry{s.entry(t, entity)},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &dsse.Envelope{
			Payload: []byte(statement), PayloadType: "application/vnd.in-toto+json",
			Signatures: []*dsse.Signature{{Sig: content.Signature()}},
		}},
	}
}

// JSON returns a bundle as registries have it.
func JSON(t testing.TB, bundle *protobundle.Bundle) []byte {
	t.Helper()
	raw, err := protojson.Marshal(bundle)
	check(t, err)
	return raw
}

// entry returns the log entry of a signature, with the promise of the log.
func (s *Sigstore) entry(t testing.TB, entity *ca.TestEntity) *rekor.TransparencyLogEntry {
	t.Helper()
	entries, err := entity.TlogEntries()
	check(t, err)
	entry := proto.CloneOf(entries[0].TransparencyLogEntry())
	promise, err := s.virtual.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.GetCanonicalizedBody()), IntegratedTime: entry.GetIntegratedTime(),
		LogIndex: entry.GetLogIndex(), LogID: hex.EncodeToString(entry.GetLogId().GetKeyId()),
	})
	check(t, err)
	entry.InclusionPromise = &rekor.InclusionPromise{SignedEntryTimestamp: promise}
	var body struct{ Kind, APIVersion string }
	check(t, json.Unmarshal(entry.GetCanonicalizedBody(), &body))
	entry.KindVersion = &rekor.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	return entry
}

func certificate(t testing.TB, entity *ca.TestEntity) []byte {
	t.Helper()
	content, err := entity.VerificationContent()
	check(t, err)
	return content.Certificate().Raw
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
