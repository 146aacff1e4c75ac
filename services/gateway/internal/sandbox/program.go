// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// maxLinks bounds how many symbolic links lead to a program, as in Linux.
const maxLinks = 40

// FindProgram returns the path in the image of the program that a container of it would run, which is
// searched in the image's PATH if it has no slash. The error is that of starting it.
func FindProgram(root, program, dir string, env []string) (string, *fnproc.StartError) {
	files, err := os.OpenRoot(root)
	if err != nil {
		return "", notStarted(program, err, "")
	}
	defer func() { _ = files.Close() }()
	if strings.Contains(program, "/") {
		if !path.IsAbs(program) {
			program = path.Join("/", dir, program)
		}
		return program, executable(files, program)
	}
	for _, place := range strings.Split(searchPath(env), ":") {
		candidate := path.Join("/", place, program)
		if executable(files, candidate) == nil {
			return candidate, nil
		}
	}
	return "", notStarted(program, syscall.ENOENT, "it is in no directory of the image's PATH")
}

// searchPath returns the PATH of an image.
func searchPath(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return value
		}
	}
	return strings.TrimPrefix(environment[0], "PATH=")
}

// executable returns why a program cannot be executed, nil if it can.
func executable(files *os.Root, program string) *fnproc.StartError {
	info, err := follow(files, program)
	switch {
	case err != nil:
		return notStarted(program, cause(err), "")
	case info.IsDir():
		return notStarted(program, syscall.EACCES, "it is a directory")
	case info.Mode().Perm()&0o111 == 0:
		return notStarted(program, syscall.EACCES, "the file is not executable")
	}
	return nil
}

// cause returns the system's error without the path, which is one of this machine.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

func notStarted(program string, err error, hint string) *fnproc.StartError {
	return &fnproc.StartError{
		Path: program, Err: &fs.PathError{Op: "fork/exec", Path: program, Err: err}, Hint: hint,
	}
}

// follow returns what is at a path of an image, with the image's symbolic links followed in it.
func follow(files *os.Root, name string) (fs.FileInfo, error) {
	at, links := ".", 0
	rest := strings.Split(name, "/")
	for {
		if len(rest) == 0 {
			return files.Lstat(at)
		}
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		info, err := files.Lstat(next)
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil, syscall.ELOOP
		}
		target, err := files.Readlink(next)
		if err != nil {
			return nil, err
		}
		if path.IsAbs(target) {
			at = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
}
