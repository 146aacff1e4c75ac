// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/certified"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// judge recognizes the signatures by a signer, of one kind.
type judge struct {
	name string
	keys []signer.Key
	// matches reports whether a subject of an issuer is one of the signer's identities; nil for others than keyless ones.
	matches func(issuer, subject string) bool
	// notation is nil for signers of other kinds.
	notation certified.Notation
}

// trustedRoot is that of the keyless signers with these places.
type trustedRoot struct {
	text   []byte
	root   certified.Keyless
	judges []int
}

// newTally returns a tally for signers. The error names one that cannot be used. Without verifiers, only signatures by
// keys count.
func newTally(signers []signer.Signer, verifiers *certified.Verifiers) (*tally, error) {
	t := &tally{
		payloads: map[string]*signer.Content{}, signed: make([]signature, len(signers)), onlyKeys: true,
		verifiers: verifiers,
	}
	for i, s := range signers {
		j := judge{name: s.Name, keys: s.Keys}
		var err error
		if s.Keyless != nil && verifiers != nil {
			t.onlyKeys = false
			if err = s.Keyless.Check(); err == nil {
				j.matches, err = s.Keyless.Matcher()
			}
			if err == nil {
				err = t.trust(i, s.Keyless.TrustedRoot)
			}
		}
		if s.Notation != nil && verifiers != nil {
			t.onlyKeys, t.notation = false, true
			if err = s.Notation.Check(); err == nil {
				j.notation, err = verifiers.Notation(s.Notation)
			}
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "signer %s: %w", s.Name, err)
		}
		t.judges = append(t.judges, j)
	}
	return t, nil
}

// trust adds a signer to those of its trusted root.
func (t *tally) trust(i int, text []byte) error {
	at := slices.IndexFunc(t.roots, func(r trustedRoot) bool { return bytes.Equal(r.text, text) })
	if at < 0 {
		root, err := t.verifiers.Keyless(text)
		if err != nil {
			return fmt.Errorf("read the trusted root: %w", err)
		}
		at = len(t.roots)
		t.roots = append(t.roots, trustedRoot{text: text, root: root})
	}
	t.roots[at].judges = append(t.roots[at].judges, i)
	return nil
}

// verify counts a signature of a digest.
func (t *tally) verify(ctx context.Context, digest string, payload *signer.Content, s oci.Signature) error {
	t.total++
	switch {
	case s.Envelope != "":
		return t.byAuthority(ctx, digest, payload.Bytes(), s.Envelope)
	case s.Bundle:
		bundle, ok := oci.ParseBundle(payload.Bytes())
		if !ok {
			return nil
		}
		if bundle.Certified {
			return t.byIdentity(ctx, digest, oci.StatedDigests, func(root certified.Keyless) (certified.Identity, error) {
				return root.VerifyBundle(payload.Bytes())
			})
		}
		return t.byKey(ctx, digest, signer.NewContent(bundle.Signed), bundle.Values, bundle.SignedDigests)
	default:
		if s.Certificate != "" {
			proof := certified.Proof{Certificate: s.Certificate, Log: s.Log, Timestamp: s.Timestamp}
			err := t.byIdentity(ctx, digest, oci.SignedDigests, func(root certified.Keyless) (certified.Identity, error) {
				return root.VerifyPayload(payload.Bytes(), s.Value, proof)
			})
			if err != nil {
				return err
			}
		}
		return t.byKey(ctx, digest, payload, [][]byte{s.Value}, func() []string { return oci.SignedDigests(payload.Bytes()) })
	}
}

// byKey counts signatures by keys. What they are of is read only when a signer's signature is verified.
func (t *tally) byKey(
	ctx context.Context, digest string, signed *signer.Content, values [][]byte, of func() []string,
) error {
	for _, value := range values {
		for i, j := range t.judges {
			for _, key := range j.keys {
				if err := t.spend(ctx); err != nil {
					return err
				}
				if key.Verify(signed, value) {
					t.count(i, digest, of(), time.Time{})
					break
				}
			}
		}
	}
	return nil
}

// byIdentity counts a signature by a certificate for an identity, with each trusted root.
func (t *tally) byIdentity(
	ctx context.Context, digest string, of func(signed []byte) []string,
	verify func(certified.Keyless) (certified.Identity, error),
) error {
	for _, r := range t.roots {
		if err := t.spend(ctx); err != nil {
			return err
		}
		signed, err := guarded(func() (certified.Identity, error) { return verify(r.root) })
		if err != nil {
			if !errors.Is(err, certified.ErrNoCertificate) {
				t.note(err.Error())
			}
			continue
		}
		known := false
		for _, i := range r.judges {
			if t.judges[i].matches(signed.Issuer, signed.Subject) {
				known = true
				t.count(i, digest, of(signed.Text), time.Time{})
			}
		}
		if !known {
			t.note(fmt.Sprintf("its certificate is for %q of the issuer %q", signed.Subject, signed.Issuer))
		}
	}
	return nil
}

// byAuthority counts a signature by a certificate of an authority.
func (t *tally) byAuthority(ctx context.Context, digest string, envelope []byte, mediaType string) error {
	for i, j := range t.judges {
		if j.notation == nil {
			continue
		}
		if err := t.spend(ctx); err != nil {
			return err
		}
		signed, err := guarded(func() (certified.Envelope, error) { return j.notation.Verify(ctx, envelope, mediaType) })
		if err != nil {
			t.note(err.Error())
			continue
		}
		t.count(i, digest, []string{signed.Digest}, signed.Until)
	}
	return nil
}

// guarded calls a library with what a registry sent. A panic is the error of this one signature: the process serves
// other requests, and the library is not ours.
func guarded[T any](verify func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be verified: %v", p)
		}
	}()
	return verify()
}
