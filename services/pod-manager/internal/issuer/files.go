// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// current is the link to the directory with the files, as Kubernetes names it in volumes.
const current = "..data"

// files are the certificate of this program in a directory, which [mtls.Open] follows. All files change
// together.
type files struct {
	directory string
	// written is what the files hold.
	written map[string]string
}

// write writes the data of a Secret, unless the files hold it already.
func (f *files) write(data map[string][]byte) error {
	content, same := make(map[string]string, 3), f.written != nil
	for _, name := range []string{mtls.CertificateFile, mtls.KeyFile, mtls.AuthoritiesFile} {
		content[name] = string(data[name])
		same = same && f.written[name] == content[name]
	}
	if same {
		return nil
	}
	if err := f.replace(content); err != nil {
		return fmt.Errorf("write the certificate of this program: %w", err)
	}
	f.written = content
	return nil
}

// replace writes a new directory, and has the link lead to it.
func (f *files) replace(content map[string]string) error {
	link := filepath.Join(f.directory, current)
	former, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	next, err := os.MkdirTemp(f.directory, "..")
	if err != nil {
		return err
	}
	for name, text := range content {
		err = errors.Join(err, os.WriteFile(filepath.Join(next, name), []byte(text), 0o600))
	}
	if err == nil {
		err = switchTo(filepath.Base(next), link)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	if former == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(f.directory, former))
}

// switchTo has a link lead to target, in one step.
func switchTo(target, link string) error {
	next := link + "_tmp"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, link)
}
