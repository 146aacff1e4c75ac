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

// Copy implements the applet cp with the options that init containers use, as in "cp -a SRC... DST". It copies
// directories with their contents, copies symbolic links as links, and keeps modes and times.
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

// copyArguments returns the sources and the target in the arguments of cp. It accepts but ignores the option -a and the
// options that -a includes, because Copy always applies them. It also ignores -f and -v, which do not affect Copy.
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

// copyInto copies source to the path target, or into target if it is a directory.
func copyInto(source, target string) error {
	if info, err := os.Stat(target); err == nil && info.IsDir() && filepath.Base(source) != "." {
		target = filepath.Join(target, filepath.Base(source))
	}
	c := copier{self: selfInfo()}
	return c.copyTree(filepath.Clean(source), target)
}

// selfInfo returns the file information of this program's binary, or nil if an error occurs.
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

// copier copies a directory tree, a file or a symbolic link.
type copier struct {
	self   fs.FileInfo
	copied string      // path of the first copy of this program's binary, or empty
	made   fs.FileInfo // topmost directory of the copy, or nil before its creation
}

// copyTree copies source to target. source may be a directory, a file or a symbolic link.
func (c *copier) copyTree(source, target string) error {
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.copyDir(source, target, info)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.copyLink(source, target)
	case info.Mode().IsRegular():
		return c.copyOne(source, target, info)
	default:
		return fmt.Errorf("%s is neither file, directory nor link", source)
	}
}

func (c *copier) copyDir(source, target string, info fs.FileInfo) error {
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
	if os.SameFile(info, c.made) { // source contains the copy, so copying would never end
		return fmt.Errorf("%s cannot be copied into itself", source)
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := c.copyTree(filepath.Join(source, entry.Name()), filepath.Join(target, entry.Name())); err != nil {
			return err
		}
	}
	// Ignore an error of permission, because the target may belong to another user, such as the root directory of an
	// emptyDir volume. Only the target's contents matter then.
	if err := os.Chmod(target, info.Mode().Perm()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return keepTimes(target, info)
}

func (c *copier) copyOne(source, target string, info fs.FileInfo) error {
	if c.self != nil && os.SameFile(info, c.self) {
		return c.copyProgram(source, target)
	}
	if err := copyFile(source, target, info.Mode().Perm()); err != nil {
		return err
	}
	return keepTimes(target, info)
}

// copyLink copies a symbolic link as a link. If the link leads to this program's binary, it copies the binary instead.
// Pod templates copy a directory of our image that contains only links to the binary. Copied links would be broken in
// the pod's volume, which does not contain the binary.
func (c *copier) copyLink(source, target string) error {
	if info, err := os.Stat(source); err == nil && c.self != nil && os.SameFile(info, c.self) {
		return c.copyProgram(source, target)
	}
	to, err := os.Readlink(source)
	if err != nil {
		return err
	}
	return relink(to, target)
}

// copyProgram copies this program's binary to the first target. Further targets become links to that copy.
func (c *copier) copyProgram(source, target string) error {
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

// keepTimes sets the modification time of target to the time in info, if permitted. For a directory, call it last,
// because copying into the directory changes the directory's time.
func keepTimes(target string, info fs.FileInfo) error {
	if err := os.Chtimes(target, time.Time{}, info.ModTime()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
