// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/signer"
)

// Keyless is a signer without a key, as cosign has it: who has signed stands in a certificate and in a log.
type Keyless struct {
	// TrustedRootFile is the name of sigstore's trusted_root.json beside the file of the policy.
	TrustedRootFile string `yaml:"trustedRootFile"`
	// Identities are those of which each may sign.
	Identities []signer.Identity `yaml:"identities"`

	root []byte
}

// Notation is a signer with certificates of an authority, as notation has it.
type Notation struct {
	// CAFiles are names of files with certificates of authorities in PEM, beside the file of the policy.
	CAFiles []string `yaml:"caFiles"`
	// Identities are subjects of certificates, of which each may sign.
	Identities []string `yaml:"identities"`

	authorities []byte
}

func (k *Keyless) read(files *beside) (err error) {
	k.root, err = files.read("trustedRootFile", k.TrustedRootFile, signer.MaxTrustedRootBytes)
	return err
}

func (n *Notation) read(files *beside) error {
	n.authorities = nil
	for _, name := range n.CAFiles {
		content, err := files.read("caFiles", name, maxKeyFileBytes)
		if err != nil {
			return err
		}
		n.authorities = append(append(n.authorities, '\n'), content...)
	}
	return nil
}

// checkKind rejects a signer that is not of exactly one kind.
func (s *Signer) checkKind() error {
	kinds := 0
	for _, has := range []bool{s.Keys != "" || len(s.KeyFiles) > 0, s.Keyless != nil, s.Notation != nil} {
		if has {
			kinds++
		}
	}
	switch kinds {
	case 0:
		return errors.New("it has neither keys nor keyFiles, and neither keyless nor notation")
	case 1:
		return nil
	default:
		return errors.New("it may have only one of keys (with keyFiles), keyless and notation: name several signers")
	}
}

// signers returns the signers with what is trusted of them, which is to be read before.
func (f *File) signers() ([]signer.Signer, error) {
	var out []signer.Signer
	for _, s := range f.Signers {
		compiled, err := s.compile()
		if err != nil {
			return nil, fmt.Errorf("signer %s: %w", s.Name, err)
		}
		out = append(out, compiled)
	}
	return out, checkSizes(out)
}

// compile returns a signer.
func (s *Signer) compile() (out signer.Signer, err error) {
	out.Name = s.Name
	switch {
	case s.Keyless != nil:
		out.Keyless = &signer.Keyless{TrustedRoot: s.Keyless.root, Identities: s.Keyless.Identities}
		if err := out.Keyless.Check(); err != nil {
			return out, fmt.Errorf("keyless: %w", err)
		}
	case s.Notation != nil:
		out.Notation = &signer.Notation{Identities: s.Notation.Identities}
		if out.Notation.Authorities, err = signer.ParseAuthorities(s.Notation.authorities); err != nil {
			return out, fmt.Errorf("notation: caFiles: %w", err)
		}
		if err := out.Notation.Check(); err != nil {
			return out, fmt.Errorf("notation: %w", err)
		}
	default:
		if out.Keys, err = signer.ParsePEM(bytes.TrimSpace([]byte(s.Keys))); err != nil {
			return out, fmt.Errorf("keys: %w", err)
		}
	}
	return out, nil
}

// checkSizes rejects signers of which too much is trusted for one request. Signers share equal trusted roots.
func checkSizes(signers []signer.Signer) error {
	keys, total := 0, 0
	roots := map[string]bool{}
	for _, s := range signers {
		for _, key := range s.Keys {
			keys += len(key.DER)
		}
		if k := s.Keyless; k != nil {
			roots[string(k.TrustedRoot)] = true
			total += k.IdentityBytes()
		}
		if s.Notation != nil {
			total += s.Notation.Bytes()
		}
	}
	for root := range roots {
		total += len(root)
	}
	if keys > maxKeysBytes {
		return fmt.Errorf("the keys of all signers have %d bytes, and may have up to %d", keys, maxKeysBytes)
	}
	if total += keys; total > maxTrustBytes {
		return fmt.Errorf("the keys, certificates, trusted roots and identities of all signers have %d bytes, "+
			"and may have up to %d", total, maxTrustBytes)
	}
	return nil
}
