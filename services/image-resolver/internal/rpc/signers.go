// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/signer"
)

// kinds returns the kinds of signers whose signatures are verified.
func (h *Handler) kinds() []imageresolverv1.SignerKind {
	kinds := []imageresolverv1.SignerKind{imageresolverv1.SignerKind_SIGNER_KIND_PUBLIC_KEYS}
	if !h.Resolver.VerifiesCertificates() {
		return kinds
	}
	return append(kinds,
		imageresolverv1.SignerKind_SIGNER_KIND_KEYLESS, imageresolverv1.SignerKind_SIGNER_KIND_NOTATION)
}

// signers reads the signers of a request. Roots and certificates are read where signatures are verified, as most
// requests are answered from the cache.
func signers(list []*imageresolverv1.Signer, roots [][]byte) ([]signer.Signer, error) {
	if len(list) > signer.MaxSigners {
		return nil, fault.New(fault.Invalid, "the request names %d signers, and may name %d", len(list), signer.MaxSigners)
	}
	var out []signer.Signer
	for _, s := range list {
		if len(s.GetPublicKeys()) > signer.MaxKeys || len(s.GetName()) > signer.MaxNameBytes {
			return nil, fault.New(fault.Invalid, "the signer %.63q has more than %d keys, or a name of more than %d bytes",
				s.GetName(), signer.MaxKeys, signer.MaxNameBytes)
		}
		trusted := signer.Signer{Name: s.GetName()}
		for _, der := range s.GetPublicKeys() {
			key, err := signer.ParseDER(der)
			if err != nil {
				return nil, fault.New(fault.Invalid, "signer %s: %w", s.GetName(), err)
			}
			trusted.Keys = append(trusted.Keys, key)
		}
		var err error
		if trusted.Keyless, err = keyless(s, roots); err != nil {
			return nil, err
		}
		if trusted.Notation, err = notation(s); err != nil {
			return nil, err
		}
		out = append(out, trusted)
	}
	return out, nil
}

// keyless reads what is trusted of a keyless signer; nil for one of another kind.
func keyless(s *imageresolverv1.Signer, roots [][]byte) (*signer.Keyless, error) {
	k := s.GetKeyless()
	if k == nil {
		return nil, nil
	}
	at := int64(k.GetTrustedRoot())
	if at >= int64(len(roots)) || len(roots[at]) > signer.MaxTrustedRootBytes {
		return nil, fault.New(fault.Invalid,
			"the signer %s has the trusted root %d, which is too large or not in the request", s.GetName(), at)
	}
	if len(k.GetIdentities()) > signer.MaxIdentities {
		return nil, tooManyIdentities(s, len(k.GetIdentities()))
	}
	out := &signer.Keyless{TrustedRoot: roots[at]}
	for _, i := range k.GetIdentities() {
		out.Identities = append(out.Identities, signer.Identity{
			Issuer: i.GetIssuer(), Subject: i.GetSubject(), SubjectPattern: i.GetSubjectPattern(),
		})
	}
	return out, nil
}

// notation reads what is trusted of a signer with authorities; nil for one of another kind.
func notation(s *imageresolverv1.Signer) (*signer.Notation, error) {
	n := s.GetNotation()
	switch {
	case n == nil:
		return nil, nil
	case len(n.GetIdentities()) > signer.MaxIdentities:
		return nil, tooManyIdentities(s, len(n.GetIdentities()))
	case len(n.GetAuthorities()) > signer.MaxAuthorities:
		return nil, fault.New(fault.Invalid, "the signer %s has %d authorities, and may have %d",
			s.GetName(), len(n.GetAuthorities()), signer.MaxAuthorities)
	default:
		return &signer.Notation{Authorities: n.GetAuthorities(), Identities: n.GetIdentities()}, nil
	}
}

func tooManyIdentities(s *imageresolverv1.Signer, n int) error {
	return fault.New(fault.Invalid, "the signer %s has %d identities, and may have %d",
		s.GetName(), n, signer.MaxIdentities)
}
