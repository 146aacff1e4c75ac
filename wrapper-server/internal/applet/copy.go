// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Copy is "cp -a SRC... DST", as far as init containers need it: it copies directories
// with their contents, copies links as links, and keeps modes and times.
func Copy(args []string) int {
	sources, target, err := copyArguments(args)
	if err != nil {
		complain("cp", "%v", err)
		return 2
	}
	for _, source := range sources {
		if err := copyInto(source, target); err != nil {
			complain("cp", "%v", err)
			return 1
		}
	}
	return 0
}

// copyArguments splits a command line. It accepts the options that -a stands for, and
// options that change nothing here.
func copyArguments(args []string) (sources []string, target string, err error) {
	var paths []string
	for i, arg := range args {
		if arg == "--" {
			paths = append(paths, args[i+1:]...)
			break
		}
		option := strings.TrimLeft(arg, "-")
		switch {
		case option == arg || option == "":
			paths = append(paths, arg)
		case arg == "--archive" || arg == "--recursive" || arg == "--force" || strings.Trim(arg, "-adrRpfv") == "":
		default:
			return nil, "", fmt.Errorf("option %s is not known; known are -a, -r, -p, -d, -f", arg)
		}
	}
	if len(paths) < 2 {
		return nil, "", errors.New("usage: cp -a SRC... DST")
	}
	return paths[:len(paths)-1], paths[len(paths)-1], nil
}

// copyInto copies source to target, or into it if it is a directory.
func copyInto(source, target string) error {
	if info, err := os.Stat(target); err == nil && info.IsDir() && filepath.Base(source) != "." {
		target = filepath.Join(target, filepath.Base(source))
	}
	c := copier{self: selfInfo()}
	return c.tree(filepath.Clean(source), target)
}

// selfInfo identifies this program's file; nil if that cannot be found out.
func selfInfo() fs.FileInfo {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// copier copies one tree.
type copier struct {
	self   fs.FileInfo
	copied string      // where this program's file was copied to, if it was
	made   fs.FileInfo // the directory that is the copy; nil as long as there is none
}

// tree copies source to target. It sets a directory's times last: copying into the
// directory changes them.
func (c *copier) tree(source, target string) error {
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.dir(source, target, info)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.link(source, target)
	case info.Mode().IsRegular():
		return c.file(source, target, info)
	default:
		return fmt.Errorf("%s is neither file, directory nor link", source)
	}
}

func (c *copier) dir(source, target string, info fs.FileInfo) error {
	if err := os.Mkdir(target, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if c.made == nil {
		made, err := os.Stat(target)
		if err != nil {
			return err
		}
		c.made = made
	}
	if os.SameFile(info, c.made) { // there would be no end of it
		return fmt.Errorf("%s cannot be copied into itself", source)
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := c.tree(filepath.Join(source, entry.Name()), filepath.Join(target, entry.Name())); err != nil {
			return err
		}
	}
	// The target can be a volume that another user owns, such as an emptyDir, so its mode
	// cannot be changed: only its contents matter.
	if err := os.Chmod(target, info.Mode().Perm()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return keepTimes(target, info)
}

func (c *copier) file(source, target string, info fs.FileInfo) error {
	if c.self != nil && os.SameFile(info, c.self) {
		return c.program(source, target)
	}
	if err := copyFile(source, target, info.Mode().Perm()); err != nil {
		return err
	}
	return keepTimes(target, info)
}

// link copies a link as a link. Links to this very program are the exception: in
// our image, the directory that templates copy has nothing but such links, and in the
// pod's volume they would point nowhere.
func (c *copier) link(source, target string) error {
	if info, err := os.Stat(source); err == nil && c.self != nil && os.SameFile(info, c.self) {
		return c.program(source, target)
	}
	to, err := os.Readlink(source)
	if err != nil {
		return err
	}
	return relink(to, target)
}

// program copies this program once, and links further names to that copy.
func (c *copier) program(source, target string) error {
	if c.copied != "" {
		to, err := filepath.Rel(filepath.Dir(target), c.copied)
		if err != nil {
			return err
		}
		return relink(to, target)
	}
	c.copied = target
	return copyFile(source, target, 0o755)
}

// keepTimes gives target the times of what it is a copy of, if it may.
func keepTimes(target string, info fs.FileInfo) error {
	if err := os.Chtimes(target, time.Time{}, info.ModTime()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
