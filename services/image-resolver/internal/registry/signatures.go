// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// maxReferrerPages bounds the pages of a list of what refers to an image.
const maxReferrerPages = 5

// noReferrers are the statuses of registries that do not list what refers to an image.
var noReferrers = []int{
	http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
	http.StatusNotImplemented,
}

// Signatures are the signatures of a digest, as a registry has them.
type Signatures struct {
	Found []oci.Signature
	// Unread is why one of the documents that may have signatures could not be read; nil if all were.
	Unread error
}

// Unreadable reports whether an error is about one document, as it will be the next time too: others count without
// it. An error of the registry, or of what it permits, is not.
func Unreadable(err error) bool { return fault.Of(err) == fault.Precondition && refusedWith(err) == 0 }

// Signatures returns the signatures of a digest: from cosign's tag, and from artifacts that refer to the digest, those
// of notation only if they are wanted.
func (s *Session) Signatures(ctx context.Context, digest string, notation bool) (Signatures, error) {
	var all Signatures
	artifacts, err := s.referrers(ctx, digest, notation)
	if err != nil {
		return Signatures{}, err
	}
	for _, reference := range append([]string{oci.SignatureTag(digest)}, artifacts...) {
		found, err := s.signaturesAt(ctx, reference)
		if err != nil && !Unreadable(err) {
			return Signatures{}, err
		}
		all.Unread = cmp.Or(all.Unread, err)
		if all.Found = append(all.Found, found...); len(all.Found) > oci.MaxSignatures {
			return Signatures{}, fault.New(fault.Precondition,
				"the image has more than %d signatures, which is the limit: remove some", oci.MaxSignatures)
		}
	}
	return all, nil
}

// signaturesAt returns the signatures in an artifact; none if the registry does not have it.
func (s *Session) signaturesAt(ctx context.Context, reference string) ([]oci.Signature, error) {
	raw, _, err := s.read(ctx, s.url("manifests", reference))
	if declinedWith(err) == http.StatusNotFound {
		return nil, nil
	}
	if err == nil && strings.Contains(reference, ":") {
		err = verify(raw, reference, "manifest")
	}
	if err != nil {
		return nil, err
	}
	return oci.ParseSignatures(raw)
}

// referrers returns the digests of artifacts with signatures that refer to a digest. A registry without a list
// may have one that cosign has pushed, at a tag.
func (s *Session) referrers(ctx context.Context, digest string, notation bool) ([]string, error) {
	artifacts, err := s.referrerList(ctx, digest, notation)
	if !slices.Contains(noReferrers, declinedWith(err)) {
		return artifacts, err
	}
	raw, _, err := s.read(ctx, s.url("manifests", oci.ReferrersTag(digest)))
	if declinedWith(err) == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return oci.ParseReferrers(raw, notation)
}

// referrerList returns the digests in all pages of the registry's list.
func (s *Session) referrerList(ctx context.Context, digest string, notation bool) ([]string, error) {
	var artifacts []string
	next := s.url("referrers", digest)
	for range maxReferrerPages {
		raw, link, err := s.page(ctx, next)
		if err != nil {
			return nil, err
		}
		more, err := oci.ParseReferrers(raw, notation)
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, more...)
		if len(artifacts) > oci.MaxArtifacts {
			return nil, oci.TooManyArtifacts(len(artifacts))
		}
		if next, err = s.nextPage(next, link); err != nil || next == nil {
			return artifacts, err
		}
	}
	return nil, fault.New(fault.Precondition,
		"the list of what refers to the image has more than %d pages, which is the limit", maxReferrerPages)
}

// page returns a page of a list, and where the next one is.
func (s *Session) page(ctx context.Context, at *url.URL) (raw []byte, link string, err error) {
	resp, err := s.send(ctx, http.MethodGet, at)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if raw, err = io.ReadAll(resp.Body); err != nil {
		return nil, "", s.explain(ctx, "list the signatures", err)
	}
	return raw, resp.Header.Get("Link"), nil
}
