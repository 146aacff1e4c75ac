package pkgtree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// Apply carries out changes below dir. It checks all of them before the first
// write: a created file must not take the place of one that is there but was not
// read, such as a file that .krmignore names, and what somebody wrote since it was
// read, such as while functions ran, must not be lost.
func Apply(dir string, changes []Change) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("writing package: %w", err)
	}
	defer root.Close()
	for _, c := range changes {
		if err := check(root, c); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := apply(root, c); err != nil {
			return fmt.Errorf("writing package: %w", err)
		}
	}
	return nil
}

func check(root *os.Root, c Change) error {
	if c.Before == nil {
		return checkCreation(root, c)
	}
	now, err := root.ReadFile(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was deleted meanwhile: nothing was written; run the command again", c.Path)
	case err != nil:
		return fmt.Errorf("writing package: %w", err)
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
		return fmt.Errorf("writing package: %w", err)
	}
	return fmt.Errorf("a function created %s, which exists but is no resource file of this package: nothing was written; rename or remove it", c.Path)
}

func apply(root *os.Root, c Change) error {
	if c.After == nil {
		return root.Remove(c.Path)
	}
	if err := root.MkdirAll(path.Dir(c.Path), 0o755); err != nil {
		return err
	}
	return root.WriteFile(c.Path, c.After, 0o644)
}
