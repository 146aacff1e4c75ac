// SPDX-License-Identifier: Apache-2.0

package testregistry

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What cosign calls the artifacts of signatures.
const (
	artifactType = "application/vnd.dev.cosign.artifact.sig.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	bundleType   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// Key returns a new signing key, and its public key in DER.
func Key(t testing.TB) (key *ecdsa.PrivateKey, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if public, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
		t.Fatal(err)
	}
	return key, public
}

// Payload returns what cosign signs of a digest.
func Payload(digest string) string {
	return `{"critical":{"identity":{"docker-reference":"example.com/fn"},"image":{"docker-manifest-digest":"` + digest +
		`"},"type":"cosign container image signature"},"optional":null}`
}

// Signed is a payload with a signature, and what else cosign puts beside it; empty for what it does not.
type Signed struct{ Payload, Signature, Certificate, Log string }

// annotations returns those of a layer.
func (s Signed) annotations() string {
	all := map[string]string{"dev.cosignproject.cosign/signature": s.Signature}
	if s.Certificate != "" {
		all["dev.sigstore.cosign/certificate"] = s.Certificate
	}
	if s.Log != "" {
		all["dev.sigstore.cosign/bundle"] = s.Log
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // they are texts
	}
	return string(text)
}

// Sign returns the payload of a digest with the signature of each key.
func Sign(t testing.TB, digest string, keys ...*ecdsa.PrivateKey) []Signed {
	t.Helper()
	var all []Signed
	for _, key := range keys {
		hash := sha256.Sum256([]byte(Payload(digest)))
		raw, err := key.Sign(rand.Reader, hash[:], crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Signed{Payload: Payload(digest), Signature: base64.StdEncoding.EncodeToString(raw)})
	}
	return all
}

// PushSignatures puts signatures at cosign's tag of a digest.
func (r *Registry) PushSignatures(t testing.TB, repository, digest string, all []Signed) {
	t.Helper()
	r.put(t, repository, strings.Replace(digest, ":", "-", 1)+".sig", manifestType, r.signatures(t, repository, "", all))
}

// PushReferrer puts signatures into an artifact that refers to a digest, and into a list at a tag too if the
// registry has none. It returns the digest of the artifact.
func (r *Registry) PushReferrer(t testing.TB, repository, digest string, all []Signed, atTag bool) string {
	t.Helper()
	raw := r.signatures(t, repository, digest, all)
	own := Digest(raw)
	r.put(t, repository, own, manifestType, raw)
	if atTag {
		index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"artifactType":%q,"digest":%q,"size":%d}]}`,
			manifestType, artifactType, own, len(raw))
		r.put(t, repository, strings.Replace(digest, ":", "-", 1), indexType, []byte(index))
	}
	return own
}

// PushLargeReferrer puts an artifact that refers to a digest, with a signature of a payload that is larger than what is
// read.
func (r *Registry) PushLargeReferrer(t testing.TB, repository, digest string) {
	t.Helper()
	raw := r.signatures(t, repository, digest, []Signed{{Payload: strings.Repeat(" ", 65<<10)}})
	r.put(t, repository, Digest(raw), manifestType, raw)
}

// PushBundle puts a statement about a digest with the signature of a key into an artifact that refers to the digest,
// as cosign 3 does. Of is the digest in the statement, and predicate what it states.
func (r *Registry) PushBundle(t testing.TB, repository, digest, of, predicate string, key *ecdsa.PrivateKey) {
	t.Helper()
	const kind = "application/vnd.in-toto+json"
	statement := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],`+
		`"predicateType":%q,"predicate":{}}`, strings.TrimPrefix(of, "sha256:"), predicate)
	hash := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))
	signature, err := key.Sign(rand.Reader, hash[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	bundle := fmt.Appendf(nil, `{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":"x"}},"dsseEnvelope":`+
		`{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`, bundleType,
		base64.StdEncoding.EncodeToString([]byte(statement)), kind, base64.StdEncoding.EncodeToString(signature))
	r.PushArtifact(t, repository, digest, Artifact{bundleType, bundleType, bundle})
}

// Artifact is an artifact with one layer.
type Artifact struct {
	Type, LayerType string
	Content         []byte
}

// BundleArtifact returns the artifact of a bundle, as cosign 3 writes it.
func BundleArtifact(bundle []byte) Artifact { return Artifact{bundleType, bundleType, bundle} }

// EnvelopeArtifact returns the artifact of an envelope, as notation writes it.
func EnvelopeArtifact(envelope []byte, form string) Artifact {
	return Artifact{"application/vnd.cncf.notary.signature", form, envelope}
}

// PushArtifact puts an artifact that refers to a digest.
func (r *Registry) PushArtifact(t testing.TB, repository, digest string, a Artifact) {
	t.Helper()
	config := []byte("{}")
	r.blob(t, repository, config)
	r.blob(t, repository, a.Content)
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"artifactType":%q,"config":{"mediaType":`+
		`"application/vnd.oci.empty.v1+json","digest":%q,"size":2},"layers":[{"mediaType":%q,"digest":%q,"size":%d}],`+
		`"subject":{"mediaType":%q,"digest":%q,"size":1}}`,
		manifestType, a.Type, Digest(config), a.LayerType, Digest(a.Content), len(a.Content), manifestType, digest)
	r.put(t, repository, Digest(manifest), manifestType, manifest)
}

// signatures pushes payloads, and returns the manifest of their artifact, which may refer to a digest.
func (r *Registry) signatures(t testing.TB, repository, subject string, all []Signed) []byte {
	t.Helper()
	config := []byte("{}")
	r.blob(t, repository, config)
	var layers []string
	for _, s := range all {
		r.blob(t, repository, []byte(s.Payload))
		layers = append(layers, fmt.Sprintf(`{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","size":%d,`+
			`"digest":%q,"annotations":%s}`, len(s.Payload), Digest([]byte(s.Payload)), s.annotations()))
	}
	refers := ""
	if subject != "" {
		refers = fmt.Sprintf(`"subject":{"mediaType":%q,"digest":%q,"size":1},`, manifestType, subject)
	}
	return fmt.Appendf(nil,
		`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":%d},%s"layers":[%s]}`,
		manifestType, artifactType, Digest(config), len(config), refers, strings.Join(layers, ","))
}

// Digest returns the digest of content.
func Digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// blob pushes a blob past all middleware.
func (r *Registry) blob(t testing.TB, repository string, content []byte) {
	t.Helper()
	r.send(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+Digest(content), "", content)
}

// put pushes a manifest past all middleware.
func (r *Registry) put(t testing.TB, repository, reference, mediaType string, content []byte) {
	t.Helper()
	r.send(t, http.MethodPut, "/v2/"+repository+"/manifests/"+reference, mediaType, content)
}

func (r *Registry) send(t testing.TB, method, path, mediaType string, content []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.plain.URL+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}
