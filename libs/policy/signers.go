// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
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
	// maxKeyFileBytes is how large a file of keys may be.
	maxKeyFileBytes = 16 << 10
	// maxKeysBytes is how large all keys may be together: each question about an image has them.
	maxKeysBytes = 32 << 10
)

// Signer is a signer of images, as users write it. Each of its keys may sign.
type Signer struct {
	Name string `yaml:"name"`
	// Keys are public keys in PEM, such as the content of a cosign.pub.
	Keys string `yaml:"keys"`
	// KeyFiles are names of files with such keys, beside the file of the policy.
	KeyFiles []string `yaml:"keyFiles"`
}

// Read reads the policy at path with the key files that it names. It returns what it read of all files, which
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

// ReadKeys reads the key files that signers name, from dir. It returns what it read.
func (f *File) ReadKeys(dir string) (content []byte, err error) {
	for i := range f.Signers {
		s := &f.Signers[i]
		for _, name := range s.KeyFiles {
			if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
				return nil, fmt.Errorf("signer %s: keyFiles has %q: it has to be the name of a file beside the policy",
					s.Name, name)
			}
			keys, err := readUpTo(filepath.Join(dir, name), maxKeyFileBytes)
			if err != nil {
				return nil, fmt.Errorf("signer %s: read the key file: %w", s.Name, err)
			}
			s.Keys += "\n" + string(keys)
			content = fmt.Appendf(content, "\n%q %d\n", name, len(keys)) // a key may move to another file
			content = append(content, keys...)
		}
		s.KeyFiles = nil
	}
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
		case s.Keys == "" && len(s.KeyFiles) == 0:
			return fmt.Errorf("signer %s: it has neither keys nor keyFiles", s.Name)
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

// signers returns the signers with their keys, which are to be read before.
func (f *File) signers() ([]signer.Signer, error) {
	var out []signer.Signer
	total := 0
	for _, s := range f.Signers {
		keys, err := signer.ParsePEM(bytes.TrimSpace([]byte(s.Keys)))
		if err != nil {
			return nil, fmt.Errorf("signer %s: keys: %w", s.Name, err)
		}
		for _, key := range keys {
			total += len(key.DER)
		}
		out = append(out, signer.Signer{Name: s.Name, Keys: keys})
	}
	if total > maxKeysBytes {
		return nil, fmt.Errorf("the keys of all signers have %d bytes, and may have up to %d", total, maxKeysBytes)
	}
	return out, nil
}

// Signers returns the signers that the policy trusts.
func (p *Policy) Signers() []signer.Signer {
	if p == nil {
		return nil
	}
	return p.signers
}

// UsesSigners reports whether a rule depends on who has signed an image.
func (p *Policy) UsesSigners() bool {
	return p != nil && slices.ContainsFunc(p.rules, (*rule).usesSigners)
}

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
