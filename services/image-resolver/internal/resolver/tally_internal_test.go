// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/signer"
)

// TestVerificationsEndWithTheirContext counts signatures that nothing waits for any more, and too many.
func TestVerificationsEndWithTheirContext(t *testing.T) {
	tally := &tally{judges: []judge{{name: "a", keys: make([]signer.Key, 10)}}, signed: make([]signature, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	values := make([][]byte, maxVerifications)
	cancel()
	if err := tally.byKey(ctx, "", signer.NewContent(nil), values, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if tally.verifications > 0 {
		t.Errorf("%d verifications after the end", tally.verifications)
	}
	err := tally.byKey(t.Context(), "", signer.NewContent(nil), values, nil)
	if fault.Of(err) != fault.Precondition || tally.verifications != maxVerifications+1 {
		t.Errorf("too many: %v after %d verifications", err, tally.verifications)
	}
}

// TestSignersAreToldApart by all that is trusted of them.
func TestSignersAreToldApart(t *testing.T) {
	keyless := func(root string, identities ...signer.Identity) signer.Signer {
		return signer.Signer{Name: "a", Keyless: &signer.Keyless{TrustedRoot: []byte(root), Identities: identities}}
	}
	notation := func(der string, identities ...string) signer.Signer {
		n := &signer.Notation{Authorities: [][]byte{[]byte(der)}, Identities: identities}
		return signer.Signer{Name: "a", Notation: n}
	}
	all := map[string]signer.Signer{
		"none":                {Name: "a"},
		"a key":               {Name: "a", Keys: []signer.Key{{DER: []byte("k")}}},
		"a root":              keyless("r", signer.Identity{Issuer: "i", Subject: "s"}),
		"another root":        keyless("R", signer.Identity{Issuer: "i", Subject: "s"}),
		"another issuer":      keyless("r", signer.Identity{Issuer: "I", Subject: "s"}),
		"another subject":     keyless("r", signer.Identity{Issuer: "i", Subject: "S"}),
		"a pattern":           keyless("r", signer.Identity{Issuer: "i", SubjectPattern: "s"}),
		"two identities":      keyless("r", signer.Identity{Issuer: "i", Subject: "s"}, signer.Identity{}),
		"notation":            notation("c", "s"),
		"another certificate": notation("C", "s"),
		"another identity":    notation("c", "S"),
		"both identities":     notation("c", "s", "S"),
	}
	seen := map[string]string{}
	for name, s := range all {
		hash := hashOf([]signer.Signer{s})
		if other, ok := seen[hash]; ok {
			t.Errorf("%s is taken for %s", name, other)
		}
		seen[hash] = name
	}
}

// TestSignaturesCountUntilTheyExpire has several by one signer: the one that is valid for longest counts.
func TestSignaturesCountUntilTheyExpire(t *testing.T) {
	const digest = "sha256:a"
	now := time.Now()
	tally := &tally{judges: []judge{{name: "a"}, {name: "b"}}, signed: make([]signature, 2)}
	tally.count(0, digest, []string{digest}, now.Add(time.Minute))
	tally.count(0, digest, []string{digest}, now.Add(time.Hour))
	tally.count(0, digest, []string{digest}, now.Add(time.Second))
	tally.count(1, digest, []string{digest}, now.Add(time.Hour))
	tally.count(1, digest, []string{digest}, time.Time{})
	tally.count(1, digest, []string{digest}, now.Add(time.Hour))
	a := answer{signers: tally.signedBy()}
	for after, want := range map[time.Duration]string{
		0: "a b", 59 * time.Minute: "a b", time.Hour: "b", 1e6 * time.Hour: "b",
	} {
		names, ended := a.signedAt(now.Add(after))
		if strings.Join(names, " ") != want || ended == (want == "a b") {
			t.Errorf("after %v: %q, ended %t, want %s", after, names, ended, want)
		}
	}
}

// TestPanicsOfLibrariesAreErrors has one that reads what it should not.
func TestPanicsOfLibrariesAreErrors(t *testing.T) {
	_, err := guarded(func() (int, error) {
		var missing *signature
		return int(missing.until.Unix()), nil
	})
	if err == nil || !strings.Contains(err.Error(), "it cannot be verified") {
		t.Errorf("%v", err)
	}
}

// TestNotesAreBounded has many long ones.
func TestNotesAreBounded(t *testing.T) {
	tally := &tally{total: 10}
	for i := range 10 {
		tally.note(strings.Repeat("a", 10000) + string(rune('a'+i)))
	}
	tally.note("\xff")
	if found := tally.found(); len(found) > 3*600 || !strings.HasPrefix(found, "10 signatures, none by a signer") {
		t.Errorf("%d bytes: %.100s", len(found), found)
	}
}
