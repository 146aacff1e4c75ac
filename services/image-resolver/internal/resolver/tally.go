// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/certified"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

const (
	// maxVerifications is how many signatures by signers are verified of an image in one registry: 20 signatures by 200
	// keys. An image may have many signatures, and each may be by each key.
	maxVerifications = 4000
	// maxNotes bounds what is said about signatures by others, and maxNoteBytes each of it.
	maxNotes     = 3
	maxNoteBytes = 400
)

// tally counts signatures.
type tally struct {
	verifiers *certified.Verifiers // nil without
	judges    []judge
	roots     []trustedRoot
	notation  bool                       // a signer uses it
	onlyKeys  bool                       // all signers have keys
	payloads  map[string]*signer.Content // by digest: many signatures are of the same one
	signed    []signature                // by the signers

	total, verifications int
	// other is a signature by a signer that is of something else, and notes are about signatures by none.
	other string
	notes []string
	// unread is why a document could not be read; nil if all were.
	unread error
}

// signature is that of a signer, if there is one.
type signature struct {
	valid bool
	until time.Time // zero for ever
}

// begin begins with a source.
func (t *tally) begin() { t.total, t.verifications, t.other, t.notes, t.unread = 0, 0, "", nil, nil }

// verdict returns nil if all signers have signed, and else what was found in a source.
func (t *tally) verdict() error {
	switch signed := len(t.signedBy()); {
	case signed == len(t.judges):
		return nil
	case signed == 0 && t.unread != nil: // it may have the signature
		return fault.New(fault.Precondition, "%w (besides: %s)", t.unread, t.found())
	default:
		return fault.New(fault.Precondition, "%w", &unsignedError{t.found()})
	}
}

// add counts the signatures of a digest. A document that cannot be read hides no signatures in others.
func (t *tally) add(ctx context.Context, s *registry.Session, digest string) error {
	all, err := s.Signatures(ctx, digest, t.notation)
	if err != nil {
		return err
	}
	t.unread = cmp.Or(t.unread, all.Unread)
	for _, found := range all.Found {
		if found.Envelope != "" && !t.notation {
			continue
		}
		payload, err := t.payload(ctx, s, found.Payload)
		if err == nil {
			err = t.verify(ctx, digest, payload, found)
		}
		switch {
		case registry.Unreadable(err):
			t.unread = cmp.Or(t.unread, err)
		case err != nil:
			return err
		}
		if t.verifications > maxVerifications {
			return nil
		}
	}
	return nil
}

// payload returns the content with a digest that is signed.
func (t *tally) payload(ctx context.Context, s *registry.Session, digest string) (*signer.Content, error) {
	if known := t.payloads[digest]; known != nil {
		return known, nil
	}
	content, err := s.Blob(ctx, digest)
	if err != nil {
		return nil, err
	}
	if len(content) > oci.MaxPayloadBytes {
		return nil, fault.New(fault.Precondition, "a signature has the payload %s of %d bytes: at most %d are read",
			digest, len(content), oci.MaxPayloadBytes)
	}
	t.payloads[digest] = signer.NewContent(content)
	return t.payloads[digest], nil
}

// spend counts a verification, and rejects it if there were too many or nothing waits for it any more.
func (t *tally) spend(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.verifications++; t.verifications > maxVerifications {
		return fault.New(fault.Precondition, "the image has more signatures than can be compared with all signers "+
			"in %d verifications, which is the limit: remove some", maxVerifications)
	}
	return nil
}

// count counts a verified signature of images by a signer.
func (t *tally) count(i int, digest string, images []string, until time.Time) {
	switch {
	case slices.Contains(images, digest):
		s := &t.signed[i]
		if !s.valid || until.IsZero() || !s.until.IsZero() && until.After(s.until) {
			s.until = until
		}
		s.valid = true
	case len(images) > 0:
		t.other = fmt.Sprintf("a signature by %s that is of another image, %.71s", t.judges[i].name, images[0])
	default:
		t.other = fmt.Sprintf("a signature by %s that is of no image", t.judges[i].name)
	}
}

// note notes something about a signature that is by no signer.
func (t *tally) note(about string) {
	about = excerpt.Middle(strings.ToValidUTF8(about, "?"), maxNoteBytes)
	if len(t.notes) < maxNotes && !slices.Contains(t.notes, about) {
		t.notes = append(t.notes, about)
	}
}

// signedBy returns the signers that have signed.
func (t *tally) signedBy() []signedBy {
	var out []signedBy
	for i, s := range t.signed {
		if s.valid {
			out = append(out, signedBy{t.judges[i].name, s.until})
		}
	}
	return out
}

// found returns what there is in place of a signature by a signer.
func (t *tally) found() string {
	by, notes := "signer", ""
	if t.onlyKeys {
		by = "key"
	}
	if len(t.notes) > 0 {
		notes = ": " + strings.Join(t.notes, "; ")
	}
	switch {
	case t.other != "":
		return t.other
	case t.total == 0:
		return "no signature"
	case t.total == 1:
		return fmt.Sprintf("1 signature, which is not by a %s of the policy%s", by, notes)
	default:
		return fmt.Sprintf("%d signatures, none by a %s of the policy%s", t.total, by, notes)
	}
}
