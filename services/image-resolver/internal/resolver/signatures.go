// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// Signatures is which signers have signed an image.
type Signatures struct {
	// Signers are the names of the signers that have, in the order in which they were asked for.
	Signers []string
	// Found is which signatures there are if no signer has signed.
	Found string
	// Unread is why a document that may have further signatures could not be read; empty if all were.
	Unread string
}

// signedBy is a signer that has signed.
type signedBy struct {
	name string
	// until is when the signature expires; zero if it does not.
	until time.Time
}

// ended reports whether the signature counts no more.
func (s signedBy) ended(now time.Time) bool { return !s.until.IsZero() && !now.Before(s.until) }

// signatures returns which of a request's signers have signed an image. It is remembered by digest, and no longer than
// the certificates are valid.
func (r *Resolver) signatures(
	ctx context.Context, repository string, image *oci.Image, req Request,
) (*Signatures, error) {
	query := r.signaturesQuery(repository, image, req)
	found, err := r.get(ctx, query)
	names, ended := found.Value.signedAt(time.Now())
	if err == nil && ended {
		query.Renew = true
		found, err = r.get(ctx, query)
		names, _ = found.Value.signedAt(time.Now())
	}
	if unsigned, ok := errors.AsType[*unsignedError](err); ok {
		return &Signatures{Found: unsigned.found}, nil
	}
	if err != nil {
		return nil, annotate(err, "verify the signatures of", repository+"@"+image.Digest)
	}
	return &Signatures{Signers: names, Found: "a signature that has expired", Unread: found.Value.unread}, nil
}

// signedAt returns the names of the signers whose signatures count, and reports whether others do not any more.
func (a answer) signedAt(now time.Time) (names []string, ended bool) {
	for _, s := range a.signers {
		if s.ended(now) {
			ended = true
		} else {
			names = append(names, s.name)
		}
	}
	return names, ended
}

// signaturesQuery asks who has signed an image. That no signer has is remembered as failures are, so that a new
// signature is soon found.
func (r *Resolver) signaturesQuery(repository string, image *oci.Image, req Request) cache.Query[string, answer] {
	v := verification{resolver: r, repository: repository, digests: []string{image.Digest}, signers: req.Signers}
	if image.IndexDigest != "" {
		v.digests = append(v.digests, image.IndexDigest)
	}
	return cache.Query[string, answer]{
		Key:      "signatures " + repository + "@" + strings.Join(v.digests, ",") + " " + hashOf(req.Signers),
		Lifetime: r.cfg.Cache.Tags, Fetch: v.run, Renew: req.Renew,
	}
}

// VerifiesCertificates reports whether signatures by certificates count, and not only those by keys.
func (r *Resolver) VerifiesCertificates() bool { return r.cfg.Verifiers != nil }

// hashOf returns what distinguishes signers and all that is trusted of them.
func hashOf(signers []signer.Signer) string {
	hash, roots := sha256.New(), map[*byte][sha256.Size]byte{} // signers share roots
	for _, s := range signers {
		fmt.Fprintf(hash, "%d %q", len(s.Keys), s.Name)
		for _, key := range s.Keys {
			fmt.Fprintf(hash, " %x", key.DER)
		}
		if k := s.Keyless; k != nil && len(k.TrustedRoot) > 0 {
			root, known := roots[&k.TrustedRoot[0]]
			if !known {
				root = sha256.Sum256(k.TrustedRoot)
				roots[&k.TrustedRoot[0]] = root
			}
			fmt.Fprintf(hash, " keyless %x %q", root, k.Identities)
		}
		if n := s.Notation; n != nil {
			fmt.Fprintf(hash, " notation %x %q", n.Authorities, n.Identities)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// unsignedError is an image without a signature by one of the signers.
type unsignedError struct{ found string }

func (e *unsignedError) Error() string { return e.found }

// isUnsigned reports whether the sources have no further signature.
func isUnsigned(err error) bool {
	_, ok := errors.AsType[*unsignedError](err)
	return ok
}

// verification finds who has signed an image: its digest, or that of the index from which it was chosen.
type verification struct {
	resolver   *Resolver
	repository string
	digests    []string
	signers    []signer.Signer
}

// run verifies the signatures in the registry. A mirror that lacks one of a signer may not have copied it: the
// registry itself is asked then.
func (v verification) run(ctx context.Context) (a answer, err error) {
	t, err := newTally(v.signers, v.resolver.cfg.Verifiers)
	if err != nil {
		return a, err
	}
	err = v.resolver.cfg.Registry.With(ctx, v.repository, func(ctx context.Context, s *registry.Session) error {
		t.begin()
		for _, digest := range v.digests {
			if err := t.add(ctx, s, digest); err != nil {
				return err
			}
		}
		return t.verdict()
	})
	if a.signers = t.signedBy(); len(a.signers) > 0 && isUnsigned(err) {
		err = nil // some have signed, and all sources were asked
		if t.unread != nil {
			a.unread = t.unread.Error()
		}
	}
	return a, err
}
