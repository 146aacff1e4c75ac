// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/signer"
)

// Bounds of signers.
const (
	// maxKeyFileBytes is how large a file of keys or certificates may be.
	maxKeyFileBytes = 16 << 10
	// maxKeysBytes is how large all keys may be together, and maxTrustBytes all that is trusted of signers: each
	// question about an image has them.
	maxKeysBytes  = 32 << 10
	maxTrustBytes = 256 << 10
)

// Signer is a signer of images, as users write it: one with keys, of which each may sign, or one of another kind.
type Signer struct {
	Name string `yaml:"name"`
	// Keys are public keys in PEM, such as the content of a cosign.pub.
	Keys string `yaml:"keys"`
	// KeyFiles are names of files with such keys, beside the file of the policy.
	KeyFiles []string `yaml:"keyFiles"`
	// Keyless is a signer whose certificates are for some minutes.
	Keyless *Keyless `yaml:"keyless"`
	// Notation is a signer with certificates of an authority.
	Notation *Notation `yaml:"notation"`
}

// Read reads the policy at path with the files that its signers name. It returns what it read of all files, which
// differs if one has changed.
func Read(path string) (file *File, content []byte, err error) {
	if content, err = readUpTo(path, MaxFileBytes); err != nil {
		return nil, nil, err
	}
	if file, err = Parse(content); err != nil {
		return nil, content, err
	}
	keys, err := file.ReadKeys(filepath.Dir(path))
	return file, append(content, keys...), err
}

// ReadKeys reads the files that signers name, from dir: keys, certificates and trusted roots. It returns what it read.
func (f *File) ReadKeys(dir string) (content []byte, err error) {
	files := beside{dir: dir}
	for i := range f.Signers {
		if err := f.Signers[i].read(&files); err != nil {
			return nil, fmt.Errorf("signer %s: %w", f.Signers[i].Name, err)
		}
	}
	return files.content, nil
}

// read reads the files of a signer.
func (s *Signer) read(files *beside) error {
	for _, name := range s.KeyFiles {
		keys, err := files.read("keyFiles", name, maxKeyFileBytes)
		if err != nil {
			return err
		}
		s.Keys += "\n" + string(keys)
	}
	s.KeyFiles = nil
	if s.Keyless != nil {
		return s.Keyless.read(files)
	}
	if s.Notation != nil {
		return s.Notation.read(files)
	}
	return nil
}

// beside are the files beside a policy.
type beside struct {
	dir     string
	content []byte // what was read of all
}

// read reads a file that a field names, and one byte more than limit of a larger one.
func (b *beside) read(field, name string, limit int64) ([]byte, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%s has %q: it has to be the name of a file beside the policy", field, name)
	}
	content, err := readUpTo(filepath.Join(b.dir, name), limit)
	if err != nil {
		return nil, fmt.Errorf("%s: read the key file: %w", field, err)
	}
	b.content = fmt.Appendf(b.content, "\n%q %d\n", name, len(content)) // a key may move to another file
	b.content = append(b.content, content...)
	return content, nil
}

// readUpTo returns the content of a file, and one byte more than limit of a larger one.
func readUpTo(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	return content, errors.Join(err, file.Close())
}

// checkSigners returns the first problem of the signers, and of the rules that name some.
func (f *File) checkSigners() error {
	if len(f.Signers) > signer.MaxSigners {
		return fmt.Errorf("it has %d signers, and may have up to %d", len(f.Signers), signer.MaxSigners)
	}
	var names []string
	for i, s := range f.Signers {
		switch {
		case !ruleName.MatchString(s.Name):
			return fmt.Errorf("signers[%d].name is %q: it has to be up to 63 lower-case letters, digits and hyphens", i, s.Name)
		case slices.Contains(names, s.Name):
			return fmt.Errorf("signers[%d].name is %q, which is the name of another signer already", i, s.Name)
		}
		if err := s.checkKind(); err != nil {
			return fmt.Errorf("signer %s: %w", s.Name, err)
		}
		names = append(names, s.Name)
	}
	for _, r := range f.Rules {
		for _, name := range r.Signers {
			if !slices.Contains(names, name) {
				return fmt.Errorf("rule %s: signers has %q, which signers at the top of the file does not have", r.Name, name)
			}
		}
	}
	return nil
}

// Signers returns the signers that the policy trusts.
func (p *Policy) Signers() []signer.Signer {
	if p == nil {
		return nil
	}
	return p.signers
}

// UsesSigners reports whether a rule depends on who has signed an image.
func (p *Policy) UsesSigners() bool { return p != nil && len(p.ofSigners) > 0 }

// signedBy returns the names of the signers that have signed what would run: a local binary is no image.
func (f Facts) signedBy() []string {
	if f.Evaluator == Exec {
		return nil
	}
	return f.Signers
}

// isSigned reports whether one of the signers has signed what would run.
func (f Facts) isSigned(signers []string) bool {
	return slices.ContainsFunc(f.signedBy(), func(name string) bool { return slices.Contains(signers, name) })
}

// unsigned returns why a call is denied whose image none of the signers has signed.
func (f Facts) unsigned(signers []string) string {
	image := f.Image
	image.Digest = cmp.Or(image.Digest, f.Digest)
	return fmt.Sprintf("%s has to be signed by %s. Found: %s", image, strings.Join(signers, " or "), f.Signatures())
}

// Signatures returns what is known of the signatures of what would run, for callers.
func (f Facts) Signatures() string {
	switch {
	case f.Evaluator == Exec:
		return "a local binary, which has no signature"
	case len(f.Signers) == 0:
		return cmp.Or(f.Found, "no signature was verified")
	case f.Unread != "":
		return fmt.Sprintf("signed by %s, and %s", strings.Join(f.Signers, ", "), f.Unread)
	default:
		return "signed by " + strings.Join(f.Signers, ", ")
	}
}
