// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Apply carries out changes below dir, all or none as far as a file system allows: it checks and
// prepares all of them before the first file changes, and deletes last. It stops at the end of ctx
// until then. A created file must not replace an existing one that was not read, such as a file
// that .krmignore names, and changes by others since the files were read must not be lost.
func Apply(ctx context.Context, dir string, changes []Change) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write package: %w", err)
	}
	defer root.Close()
	s := &staging{root: root}
	defer s.discardRest()
	for _, c := range changes {
		if err := s.prepareChange(c); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("interrupted, nothing was written: %w", err)
	}
	if err := s.commit(); err != nil {
		return fmt.Errorf("write package: %w", err)
	}
	return nil
}

func checkChange(root *os.Root, c Change) error {
	if c.Before == nil {
		return checkCreation(root, c)
	}
	now, err := (&disk{dir: root.Name(), root: root, left: maxPackageBytes}).read(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was deleted meanwhile: nothing was written; run the command again", c.Path)
	case err != nil:
		return notWritten(err)
	case !bytes.Equal(now, c.Before):
		return fmt.Errorf("%s was changed meanwhile: nothing was written; run the command again", c.Path)
	}
	return nil
}

func checkCreation(root *os.Root, c Change) error {
	_, err := root.Lstat(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return notWritten(err)
	}
	return fmt.Errorf("a function created %s, which exists but is not a resource file of this package: nothing was "+
		"written; rename or remove it", c.Path)
}

// notWritten is for errors before the first file changes.
func notWritten(err error) error { return fmt.Errorf("write package: %w: nothing was written", err) }
