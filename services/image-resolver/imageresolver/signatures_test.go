// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"crypto/ecdsa"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// signPredicate is what cosign states of a signed image.
const signPredicate = "https://sigstore.dev/cosign/sign/v1"

// signing is a registry, and the signers of its images.
type signing struct {
	*testregistry.Registry
	resolver *imageresolver.Resolver
	signers  []*imageresolverv1.Signer
	// release and audit are signers that the resolver is asked about, stranger is none.
	release, audit, stranger *ecdsa.PrivateKey
}

func newSigning(
	t *testing.T, change func(*imageresolver.Config), middleware ...func(http.Handler) http.Handler,
) *signing {
	t.Helper()
	s := &signing{Registry: testregistry.Start(t, nil, middleware...)}
	var release, audit []byte
	s.release, release = testregistry.Key(t)
	s.audit, audit = testregistry.Key(t)
	s.stranger, _ = testregistry.Key(t)
	s.signers = []*imageresolverv1.Signer{
		{Name: "release", PublicKeys: [][]byte{release}}, {Name: "audit", PublicKeys: [][]byte{audit}},
	}
	cfg := newConfig(t)
	cfg.InsecureRegistries = []string{s.Host}
	if change != nil {
		change(&cfg)
	}
	s.resolver, _ = start(t, cfg)
	return s
}

// verify asks who has signed an image.
func (s *signing) verify(t *testing.T, image string) (*imageresolverv1.ResolveImageResponse, error) {
	t.Helper()
	return s.resolver.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{
		Image: s.Host + "/" + image, Signers: s.signers,
	})
}

// verdict words an answer.
func verdict(got *imageresolverv1.ResolveImageResponse, err error) string {
	switch {
	case err != nil:
		return "error " + fault.Of(err).String()
	case len(got.GetSignatures().GetSigners()) > 0:
		words := "signed by " + strings.Join(got.GetSignatures().GetSigners(), ", ")
		if unread := got.GetSignatures().GetUnread(); unread != "" {
			words += ", unread " + unread
		}
		return words
	default:
		return got.GetSignatures().GetFound()
	}
}

func digestOf(t *testing.T, image interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// TestVerdicts prints the table of verdicts with -v.
func TestVerdicts(t *testing.T) {
	const unknown = "1 signature, which is not by a key of the policy"
	tests := []struct {
		name    string
		prepare func(t *testing.T, s *signing, digest string)
		want    string
	}{
		{"signed", func(t *testing.T, s *signing, digest string) {
			s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.release))
		}, "signed by release"},
		{"signed by two", func(t *testing.T, s *signing, digest string) {
			s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.audit, s.stranger, s.release))
		}, "signed by release, audit"},
		{"unsigned", nil, "no signature"},
		{"signed by an unknown key", func(t *testing.T, s *signing, digest string) {
			s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.stranger))
		}, unknown},
		{"signed twice by unknown keys", func(t *testing.T, s *signing, digest string) {
			s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.stranger, s.stranger))
		}, "2 signatures, none by a key of the policy"},
		{"a signature that is none", func(t *testing.T, s *signing, digest string) {
			s.PushSignatures(t, "fn", digest, []testregistry.Signed{{Payload: testregistry.Payload(digest), Signature: "!"}})
		}, unknown},
		{"a signature of another payload", func(t *testing.T, s *signing, digest string) {
			signed := testregistry.Sign(t, digest, s.release)
			signed[0].Payload += " "
			s.PushSignatures(t, "fn", digest, signed)
		}, unknown},
		{"the signature of another image", func(t *testing.T, s *signing, digest string) {
			s.PushSignatures(t, "fn", digest, testregistry.Sign(t, "sha256:"+strings.Repeat("b", 64), s.release))
		}, "a signature by release that is of another image, sha256:" + strings.Repeat("b", 64)},
		{"an artifact that refers to the image", func(t *testing.T, s *signing, digest string) {
			s.PushReferrer(t, "fn", digest, testregistry.Sign(t, digest, s.release), false)
		}, "signed by release"},
		{"a bundle", func(t *testing.T, s *signing, digest string) {
			s.PushBundle(t, "fn", digest, digest, signPredicate, s.release)
		}, "signed by release"},
		{"a bundle by an unknown key", func(t *testing.T, s *signing, digest string) {
			s.PushBundle(t, "fn", digest, digest, signPredicate, s.stranger)
		}, unknown},
		{"the bundle of another image", func(t *testing.T, s *signing, digest string) {
			s.PushBundle(t, "fn", digest, "sha256:"+strings.Repeat("b", 64), signPredicate, s.release)
		}, "a signature by release that is of another image, sha256:" + strings.Repeat("b", 64)},
		{"an attestation, which is no signature", func(t *testing.T, s *signing, digest string) {
			s.PushBundle(t, "fn", digest, digest, "https://slsa.dev/provenance/v1", s.release)
		}, "a signature by release that is of no image"},
		{"signatures in both places", func(t *testing.T, s *signing, digest string) {
			s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.audit))
			s.PushReferrer(t, "fn", digest, testregistry.Sign(t, digest, s.release), false)
		}, "signed by release, audit"},
		{"another image's artifact refers to it", func(t *testing.T, s *signing, digest string) {
			s.PushReferrer(t, "fn", digest, testregistry.Sign(t, "sha256:"+strings.Repeat("b", 64), s.release), false)
		}, "a signature by release that is of another image, sha256:" + strings.Repeat("b", 64)},
		{"beside an artifact that is too large", func(t *testing.T, s *signing, digest string) {
			s.PushLargeReferrer(t, "fn", digest)
			s.PushReferrer(t, "fn", digest, testregistry.Sign(t, digest, s.release), false)
		}, "signed by release, unread a signature is of 66560 bytes, and only up to 65536 are read: sign the image again"},
		{"by all, beside an artifact that is too large", func(t *testing.T, s *signing, digest string) {
			s.PushLargeReferrer(t, "fn", digest)
			s.PushReferrer(t, "fn", digest, testregistry.Sign(t, digest, s.release, s.audit), false)
		}, "signed by release, audit"},
		{"by no key, beside an artifact that is too large", func(t *testing.T, s *signing, digest string) {
			s.PushLargeReferrer(t, "fn", digest)
			s.PushReferrer(t, "fn", digest, testregistry.Sign(t, digest, s.stranger), false)
		}, "error precondition"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newSigning(t, nil)
			digest := digestOf(t, s.Push(t, "fn:v1", function))
			if tc.prepare != nil {
				tc.prepare(t, s, digest)
			}
			got, err := s.verify(t, "fn:v1")
			t.Logf("%-40s %s", tc.name, verdict(got, err))
			if verdict(got, err) != tc.want {
				t.Errorf("%s, %v, want %s", verdict(got, err), err, tc.want)
			}
			if plain, err := resolve(t, s.resolver, s.Host+"/fn:v1"); err != nil || plain.GetSignatures() != nil {
				t.Errorf("without signers: %v, %v", plain.GetSignatures(), err)
			}
		})
	}
}

// TestSignatureBelongsToADigest moves, copies and adds tags.
func TestSignatureBelongsToADigest(t *testing.T) {
	s := newSigning(t, func(cfg *imageresolver.Config) { cfg.Cache.TagTTL = time.Nanosecond })
	signed := s.Push(t, "fn:v1", function)
	digest := digestOf(t, signed)
	s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.release))
	s.Tag(t, "fn:v2", signed)
	s.Tag(t, "copy:v1", signed)
	other := s.Push(t, "fn:other", function)
	for image, want := range map[string]string{
		"fn:v1": "signed by release", "fn:v2": "signed by release", "fn@" + digest: "signed by release",
		"copy:v1": "no signature", "fn:other": "no signature", "fn@" + digestOf(t, other): "no signature",
	} {
		if got, err := s.verify(t, image); verdict(got, err) != want {
			t.Errorf("%s: %s, %v, want %s", image, verdict(got, err), err, want)
		}
	}
	s.Tag(t, "fn:v1", other) // moved
	if got, err := s.verify(t, "fn:v1"); verdict(got, err) != "no signature" || got.GetDigest() != digestOf(t, other) {
		t.Errorf("a tag that moved: %s of %s, %v", verdict(got, err), got.GetDigest(), err)
	}
}

// TestSignatureOfAnIndexIsThatOfItsImages signs the index, or the image for the platform.
func TestSignatureOfAnIndexIsThatOfItsImages(t *testing.T) {
	s := newSigning(t, nil)
	image := testregistry.Image(t, function)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	for repository, digest := range map[string]string{"index": digestOf(t, index), "image": digestOf(t, image)} {
		s.PushIndex(t, repository+":v1", index)
		s.PushSignatures(t, repository, digest, testregistry.Sign(t, digest, s.release))
		got, err := s.verify(t, repository+":v1")
		if verdict(got, err) != "signed by release" || got.GetDigest() != digestOf(t, image) {
			t.Errorf("%s: %s, %v", repository, verdict(got, err), err)
		}
	}
}

// TestListOfReferrersAtATag has a registry without a list of its own.
func TestListOfReferrersAtATag(t *testing.T) {
	missing := func(w http.ResponseWriter, req *http.Request, _ http.Handler) { http.NotFound(w, req) }
	s := newSigning(t, nil, testregistry.On("/referrers/", missing))
	digest := digestOf(t, s.Push(t, "fn:v1", function))
	s.PushReferrer(t, "fn", digest, testregistry.Sign(t, digest, s.release), true)
	if got, err := s.verify(t, "fn:v1"); verdict(got, err) != "signed by release" {
		t.Errorf("%s, %v", verdict(got, err), err)
	}
}

// TestVerdictsAreCached counts how often a registry is asked.
func TestVerdictsAreCached(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*imageresolver.Config)
		signed bool
		asked  int
	}{
		"signed":             {nil, true, 1},
		"unsigned":           {func(c *imageresolver.Config) { c.Cache.FailureTTL = time.Hour }, false, 1},
		"unsigned, soon":     {nil, false, 3},
		"signed, long since": {func(c *imageresolver.Config) { c.Cache.TagTTL, c.Cache.StaleTTL = 1, 0 }, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSigning(t, tc.change)
			image := s.Push(t, "fn:v1", function)
			digest := digestOf(t, image)
			if tc.signed {
				s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.release))
			}
			s.Tag(t, "fn:v2", image)
			for _, image := range []string{"fn:v1", "fn@" + digest, "fn:v2"} {
				if _, err := s.verify(t, image); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Count("GET /v2/fn/manifests/sha256-"); got != tc.asked {
				t.Errorf("asked %d times for signatures, want %d", got, tc.asked)
			}
		})
	}
	s := newSigning(t, nil)
	digest := digestOf(t, s.Push(t, "fn:v1", function))
	s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.release))
	_, _ = s.verify(t, "fn:v1")
	s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.audit))
	if got, err := s.verify(t, "fn:v1"); verdict(got, err) != "signed by release" {
		t.Errorf("from the cache: %s, %v", verdict(got, err), err)
	}
	got, err := s.resolver.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{
		Image: s.Host + "/fn:v1", Signers: s.signers, Refresh: true,
	})
	if verdict(got, err) != "signed by audit" {
		t.Errorf("refreshed: %s, %v", verdict(got, err), err)
	}
	s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.release))
	s.signers[0].PublicKeys = s.signers[1].PublicKeys
	if got, err := s.verify(t, "fn:v1"); len(got.GetSignatures().GetSigners()) > 0 {
		t.Errorf("with another key of the same signer: %s, %v", verdict(got, err), err)
	}
}

// TestMirrorWithoutSignaturesIsNoObstacle has the signature at the registry only, or at the mirror only.
func TestMirrorWithoutSignaturesIsNoObstacle(t *testing.T) {
	mirror := testregistry.Start(t, nil)
	s := newSigning(t, func(cfg *imageresolver.Config) {
		cfg.InsecureRegistries = append(cfg.InsecureRegistries, mirror.Host)
		cfg.Mirrors = imageresolver.Pairs{cfg.InsecureRegistries[0]: {mirror.Host}}
	})
	for name, at := range map[string]*testregistry.Registry{"registry": s.Registry, "mirror": mirror} {
		image := s.Push(t, name+":v1", function)
		mirror.Tag(t, name+":v1", image)
		at.PushSignatures(t, name, digestOf(t, image), testregistry.Sign(t, digestOf(t, image), s.release))
		if got, err := s.verify(t, name+":v1"); verdict(got, err) != "signed by release" {
			t.Errorf("signed at the %s: %s, %v", name, verdict(got, err), err)
		}
	}
	image := s.Push(t, "none:v1", function)
	mirror.Tag(t, "none:v1", image)
	if got, err := s.verify(t, "none:v1"); verdict(got, err) != "no signature" {
		t.Errorf("signed nowhere: %s, %v", verdict(got, err), err)
	}
}

// TestSignersThatAreRejected asks with signers that are too many, or broken.
func TestSignersThatAreRejected(t *testing.T) {
	s := newSigning(t, nil)
	s.Push(t, "fn:v1", function)
	good := s.signers[0]
	for name, signers := range map[string][]*imageresolverv1.Signer{
		"too many":      make([]*imageresolverv1.Signer, 21),
		"too many keys": {{Name: "a", PublicKeys: make([][]byte, 11)}},
		"no key":        {good, {Name: "a", PublicKeys: [][]byte{[]byte("key")}}},
	} {
		s.signers = signers
		if _, err := s.verify(t, "fn:v1"); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v of class %v, want invalid", name, err, fault.Of(err))
		}
	}
}
