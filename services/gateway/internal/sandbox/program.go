// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

const (
	// maxLinks is the maximum number of symbolic links in the path of a program. Linux has the same limit.
	maxLinks = 40
	// maxPath is the maximum length of a program's path, in bytes. Linux has the same limit.
	maxPath = 4096
	// maxSteps is the maximum number of directories and links that the search for a program visits. Otherwise an image
	// with a long PATH could make the search arbitrarily long.
	maxSteps = 1024
)

// finder searches the files of an image for a program.
type finder struct {
	files *os.Root
	steps int // number of visited directories and links
}

// FindProgram returns the path of a program within an image. root contains the image's files, and dir is the image's
// working directory. If the name contains no slash, FindProgram searches the image's PATH, as a container would. If the
// program cannot be started, FindProgram returns the same error as an attempt to start the program.
func FindProgram(root, program, dir string, env []string) (string, *fnproc.StartError) {
	if len(program) >= maxPath {
		return "", notStarted(program, syscall.ENAMETOOLONG, "")
	}
	files, err := os.OpenRoot(root)
	if err != nil {
		return "", notStarted(program, err, "")
	}
	defer func() { _ = files.Close() }()
	f := &finder{files: files}
	if _, _, err := f.followLinks(dir); errors.Is(err, errOfKernel) {
		return "", notStarted(program, err, "the image's working directory is "+excerpt.Middle(dir, maxQuoted))
	}
	if strings.Contains(program, "/") {
		if !path.IsAbs(program) {
			program = path.Join("/", dir, program)
		}
		return program, f.checkExecutable(program)
	}
	for place := range strings.SplitSeq(searchPath(env), ":") {
		candidate := path.Join("/", place, program)
		err := f.checkExecutable(candidate)
		if err == nil {
			return candidate, nil
		}
		if errors.Is(err, errTooFar) || errors.Is(err, errOfKernel) {
			return "", err
		}
	}
	return "", notStarted(program, syscall.ENOENT, "it is in no directory of the image's PATH")
}

// searchPath returns the PATH in an image's environment, or the default PATH.
func searchPath(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return value
		}
	}
	return strings.TrimPrefix(environment[0], "PATH=")
}

// checkExecutable returns nil if the program of the image can be executed, and otherwise the error for users.
func (f *finder) checkExecutable(program string) *fnproc.StartError {
	at, info, err := f.followLinks(program)
	switch {
	case err != nil:
		return notStarted(program, systemCause(err), "")
	case info.IsDir():
		return notStarted(program, syscall.EACCES, "it is a directory")
	case info.Mode().Perm()&0o111 == 0:
		return notStarted(program, syscall.EACCES, "the file is not executable")
	}
	if hint := f.otherFormat(at); hint != "" {
		return notStarted(program, syscall.ENOEXEC, hint)
	}
	return nil
}

// machines maps the machine number in an executable's ELF header to the name of its architecture in images.
var machines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64",
	elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x",
}

// otherFormat returns the reason why this machine cannot execute the file at a path in the image. It returns an empty
// text for a script, and for a program that may work on this machine. It returns a reason for a file in an unknown
// format, because only some launchers would run the file as a shell script.
func (f *finder) otherFormat(at string) string {
	file, err := f.files.Open(at)
	if err != nil {
		return "" // the launcher reports the error
	}
	defer func() { _ = file.Close() }()
	start := make([]byte, 2)
	if _, err := io.ReadFull(file, start); err == nil && string(start) == "#!" {
		return ""
	}
	program, err := elf.NewFile(file)
	if err != nil {
		return fnproc.OtherFormat
	}
	if of := machines[program.Machine]; of != runtime.GOARCH && !hasEmulator() {
		return fmt.Sprintf("the image's program is for linux/%s, and this machine is linux/%s",
			cmp.Or(of, program.Machine.String()), runtime.GOARCH)
	}
	return ""
}

// hasEmulator reports whether this machine can execute programs of other architectures with QEMU.
func hasEmulator() bool {
	emulators, _ := filepath.Glob("/proc/sys/fs/binfmt_misc/qemu-*")
	return len(emulators) > 0
}

// systemCause returns only the errno of err, such as ENOENT, because users must not see paths of this machine.
func systemCause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// maxQuoted limits the length of a program's path in errors, in bytes. A longer path is shortened.
const maxQuoted = 200

func notStarted(program string, err error, hint string) *fnproc.StartError {
	program = excerpt.Middle(program, maxQuoted)
	return &fnproc.StartError{
		Path: program, Err: &fs.PathError{Op: "fork/exec", Path: program, Err: err}, Hint: hint,
	}
}

var errTooFar = fmt.Errorf("the path has more than %d directories and links", maxSteps)

// errOfKernel is the error for a program in /proc, /dev or /sys. A launcher must not start such a program, because the
// path could lead out of the sandbox. For example, /proc/self/fd contains the launcher's own open files.
var errOfKernel = errors.New("it is in /proc, /dev or /sys, which are the sandbox's own")

// ofKernel reports whether a path is in /proc, /dev or /sys. The files in these directories are not from an image.
func ofKernel(at string) bool {
	top, _, _ := strings.Cut(at, "/")
	return top == "proc" || top == "dev" || top == "sys"
}

// followLinks resolves symbolic links within the image. It returns the resolved path and its file information.
func (f *finder) followLinks(name string) (at string, info fs.FileInfo, err error) {
	at = "."
	links, rest := 0, strings.Split(name, "/")
	for len(rest) > 0 {
		if f.steps++; f.steps > maxSteps {
			return "", nil, errTooFar
		}
		part := rest[0]
		rest = rest[1:]
		next := cmp.Or(strings.TrimPrefix(path.Join("/", at, part), "/"), ".")
		if part == "" || part == "." || part == ".." {
			at = next
			continue
		}
		if ofKernel(next) {
			return "", nil, errOfKernel
		}
		info, err := f.files.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", nil, syscall.ELOOP
		}
		target, err := f.files.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if path.IsAbs(target) {
			at = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	info, err = f.files.Lstat(at)
	return at, info, err
}
