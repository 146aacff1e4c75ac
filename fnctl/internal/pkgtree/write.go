// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Apply writes all changes below dir. It writes nothing if ctx expires before the first file is changed, or if a file
// changed since it was read. It also writes nothing if a new file already exists, for example a file that .krmignore
// excludes. If a write fails later, the error lists the files that were changed.
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

// Check returns an error if [Apply] would reject a change. It checks the path of each change, and the current content
// of each changed file. It does not find write errors, such as read-only files, because it writes nothing.
func Check(dir string, changes []Change) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write package: %w", err)
	}
	defer root.Close()
	for _, c := range changes {
		_, err := targetOf(root, c)
		if err == nil {
			err = checkChange(root, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkChange(root *os.Root, c Change) error {
	if c.Before == nil {
		return checkCreation(root, c)
	}
	now, err := (&disk{dir: root.Name(), root: root, left: MaxPackageBytes}).read(c.Path)
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

// notWritten adds "nothing was written" to an error that occurred before the first file was changed.
func notWritten(err error) error { return fmt.Errorf("write package: %w: nothing was written", err) }

// staging writes changes in two steps, so that an error rarely leaves the package half written. It first writes
// temporary files next to their targets, which takes time and may fail. It then renames them.
type staging struct {
	root *os.Root
	// steps are the remaining renames. The deletions run after all renames. Otherwise, an interruption could delete
	// content before it is written to another file.
	steps, deletions []step
	// dirs are the directories created for new files, outermost first. They are removed after an error.
	dirs []string
}

// step is the last part of a change. It renames a temporary file to the target, or deletes the target.
type step struct {
	path string // path of the change
	temp string // file that replaces target, empty for a deletion
	// target is the file to replace or delete. If a changed file is a link, target is the linked file, and the link stays.
	target string
}

// prepareChange checks a change and writes the new content to a temporary file next to its target.
func (s *staging) prepareChange(c Change) error {
	target, err := targetOf(s.root, c)
	if err != nil {
		return err
	}
	if c.Before == nil {
		if err := s.makeDirs(path.Dir(target)); err != nil {
			return notWritten(err)
		}
	}
	if err := checkChange(s.root, c); err != nil { // after makeDirs, a name that is too long is an error
		return err
	}
	if c.After == nil {
		s.deletions = append(s.deletions, step{path: c.Path, target: target})
		return nil
	}
	if err := s.stage(c, target); err != nil {
		return notWritten(err)
	}
	return nil
}

// targetOf returns the path of the file to create, replace or delete. Links in the file's directories are resolved. It
// returns an error if the path leads out of the package, or to a file of Git.
func targetOf(root *os.Root, c Change) (string, error) {
	dir, err := resolveLinks(root.Name(), path.Dir(c.Path))
	target := path.Join(dir, path.Base(c.Path))
	if err == nil && c.Kind() == "changed" {
		target, err = resolveLinks(root.Name(), c.Path)
	}
	switch {
	case err != nil:
		return "", notWritten(err)
	case !mayWriteTo(root, target):
		return "", fmt.Errorf("%s leads to %q, outside of the package or into a directory of Git: nothing was written; "+
			"remove the link, or have the function use another path", c.Path, target)
	}
	return target, nil
}

// stage writes the new content of a target to a temporary file. A read-only target is an error.
func (s *staging) stage(c Change, target string) error {
	var mode fs.FileMode
	if c.Before != nil {
		file, err := s.root.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	}
	// If fnctl is killed, this file stays. Without the extension .yaml, no program reads it as a resource.
	temp := path.Join(path.Dir(target), ".fnctl-"+rand.Text()+".tmp")
	s.steps = append(s.steps, step{path: c.Path, temp: temp, target: target})
	return s.write(temp, c.After, mode)
}

// makeDirs creates a directory and its missing parents, and stores their names to remove them after an error.
func (s *staging) makeDirs(dir string) error {
	switch _, err := s.root.Stat(dir); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := s.makeDirs(path.Dir(dir)); err != nil {
		return err
	}
	if err := s.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	s.dirs = append(s.dirs, dir)
	return nil
}

func (s *staging) write(name string, data []byte, mode fs.FileMode) error {
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if mode != 0 {
		err = errors.Join(err, file.Chmod(mode))
	}
	return errors.Join(err, file.Close())
}

// commit renames the temporary files to their targets, and then deletes files.
func (s *staging) commit() error {
	s.steps = append(s.steps, s.deletions...)
	var done []string
	for len(s.steps) > 0 {
		if err := s.carryOut(s.steps[0]); err != nil {
			return s.describeProgress(done, err)
		}
		done = append(done, s.steps[0].path)
		s.steps = s.steps[1:]
	}
	return nil
}

func (s *staging) carryOut(next step) error {
	if next.temp == "" {
		return s.root.Remove(next.target)
	}
	return s.root.Rename(next.temp, next.target)
}

// describeProgress adds the lists of written and unwritten paths to the error that interrupted the writing.
func (s *staging) describeProgress(done []string, err error) error {
	if len(done) == 0 {
		return fmt.Errorf("%w: nothing was written", err)
	}
	left := make([]string, 0, len(s.steps))
	for _, step := range s.steps {
		left = append(left, step.path)
	}
	return fmt.Errorf("%w: the package is half written; done: %s; not done: %s", err, strings.Join(done, ", "),
		strings.Join(left, ", "))
}

// discardRest removes temporary files that were not renamed, and new directories that stayed empty.
func (s *staging) discardRest() {
	for _, step := range s.steps {
		if step.temp != "" {
			_ = s.root.Remove(step.temp)
		}
	}
	for i := len(s.dirs) - 1; i >= 0; i-- {
		_ = s.root.Remove(s.dirs[i]) // fails if the directory is not empty, as it should
	}
}
