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

// Apply writes changes below dir, either all or none as far as a file system allows. It checks and prepares all
// changes before it changes the first file, and deletes files last. If ctx expires before the first file changes, it
// writes nothing. It returns an error if a new file exists already, such as a file that .krmignore names, or if
// another program has changed a file since the file was read.
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

// notWritten wraps an error that occurred before the first file was changed.
func notWritten(err error) error { return fmt.Errorf("write package: %w: nothing was written", err) }
