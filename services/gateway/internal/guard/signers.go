// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"slices"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/signer"
)

// messages returns signers as the image-resolver reads them.
func messages(signers []signer.Signer) []*imageresolverv1.Signer {
	var out []*imageresolverv1.Signer
	roots := trustedRoots(signers)
	for _, s := range signers {
		message := &imageresolverv1.Signer{Name: s.Name}
		for _, key := range s.Keys {
			message.PublicKeys = append(message.PublicKeys, key.DER)
		}
		if s.Keyless != nil {
			message.Keyless = keyless(s.Keyless, roots)
		}
		if n := s.Notation; n != nil {
			message.Notation = &imageresolverv1.Notation{Authorities: n.Authorities, Identities: n.Identities}
		}
		out = append(out, message)
	}
	return out
}

// keyless returns what is trusted of a signer, whose root is one of the roots.
func keyless(k *signer.Keyless, roots [][]byte) *imageresolverv1.Keyless {
	message := &imageresolverv1.Keyless{}
	for i, root := range roots {
		if bytes.Equal(root, k.TrustedRoot) {
			message.TrustedRoot = uint32(i) //nolint:gosec // there are no more roots than signers
		}
	}
	for _, i := range k.Identities {
		message.Identities = append(message.Identities, &imageresolverv1.Identity{
			Issuer: i.Issuer, Subject: i.Subject, SubjectPattern: i.SubjectPattern,
		})
	}
	return message
}

// trustedRoots returns the roots of signers, each once.
func trustedRoots(signers []signer.Signer) [][]byte {
	var roots [][]byte
	for _, s := range signers {
		if s.Keyless != nil && !slices.ContainsFunc(roots, func(root []byte) bool {
			return bytes.Equal(root, s.Keyless.TrustedRoot)
		}) {
			roots = append(roots, s.Keyless.TrustedRoot)
		}
	}
	return roots
}

// unknownKind returns the signatures that an image-resolver does not verify, and that some signers make; empty if it
// verifies those of all. One of an earlier version states no kinds, and verifies signatures by keys.
func unknownKind(signers []signer.Signer, answer *imageresolverv1.Signatures) string {
	for _, s := range signers {
		switch kinds := answer.GetKinds(); {
		case s.Keyless != nil && !slices.Contains(kinds, imageresolverv1.SignerKind_SIGNER_KIND_KEYLESS):
			return "keyless signatures"
		case s.Notation != nil && !slices.Contains(kinds, imageresolverv1.SignerKind_SIGNER_KIND_NOTATION):
			return "signatures of notation"
		}
	}
	return ""
}
