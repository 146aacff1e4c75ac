// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"debug/elf"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// direct starts functions on machines that permit no namespaces. A function shares this machine's file system.
// Landlock, a security module of Linux, permits only the files of the function's image and a temporary directory. A
// function with network access may also read certificates and the files for name resolution.
type direct struct{ limits func() confine.Limits }

// newDirect returns a starter that uses no namespaces. It fails if the kernel lacks Landlock or seccomp filters.
func newDirect(l *Launcher, _ string) (starter, error) {
	trial, err := confine.New(confine.Config{Level: confine.Require, OwnFiles: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("run functions without namespaces: %w", err)
	}
	trial.Close()
	processes := l.processLimit()
	return &direct{limits: func() confine.Limits {
		return confine.Limits{FileBytes: l.cfg.MaxTemp, DataBytes: l.cfg.MaxMemory, Processes: processes()}
	}}, nil
}

func (d *direct) command(fn Function) (fnproc.Command, *fnproc.StartError) {
	program, err := findStatic(fn.Root, fn.Program[0])
	if err != nil {
		return fnproc.Command{}, err
	}
	dir := filepath.Join(fn.Root, fn.Dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = fn.Root
	}
	readable := []string{fn.Root}
	if fn.Network {
		readable = slices.Concat(readable, networkFiles, confine.Certificates)
	}
	return fnproc.Command{
		Path: program, Args: fn.Program[1:], Dir: dir, Network: fn.Network, Readable: readable,
		// Omit the image's variable HOME, because the directory does not exist on this machine. The function gets a temporary
		// directory as HOME instead.
		Env:    slices.DeleteFunc(fn.mergeEnvironment(), func(v string) bool { return strings.HasPrefix(v, "HOME=") }),
		Launch: &fnproc.Launch{Direct: true, Limits: d.limits},
	}, nil
}

// notStatic is the error for a program that is not static. It cannot find its loader or interpreter without namespaces.
const notStatic = "it is no static executable, and this machine permits no namespaces, in which it would find its " +
	"loader or interpreter: see fnctl doctor"

// findStatic returns the path of an image's program on this machine. The program must be a static executable. Without
// namespaces, other programs do not find their loader or interpreter, because its path is valid only in the image.
func findStatic(root, program string) (string, *fnproc.StartError) {
	files, err := os.OpenRoot(root)
	if err != nil {
		return "", notStarted(program, err, "")
	}
	defer func() { _ = files.Close() }()
	f := &finder{files: files}
	at, _, err := f.followLinks(program)
	if err != nil {
		return "", notStarted(program, systemCause(err), "")
	}
	path := filepath.Join(root, at)
	executable, err := elf.Open(path)
	if err != nil {
		return "", notStarted(program, syscall.ENOEXEC, notStatic)
	}
	defer func() { _ = executable.Close() }()
	for _, part := range executable.Progs {
		if part.Type == elf.PT_INTERP {
			return "", notStarted(program, syscall.ENOEXEC, notStatic)
		}
	}
	// If possible, start the program by the name of its symbolic link, because the behavior of some programs depends on
	// the name. This is impossible for a link with an absolute target, because the link leads out of the image.
	named := filepath.Join(root, program)
	resolved, _ := filepath.EvalSymlinks(path)
	if target, err := filepath.EvalSymlinks(named); err == nil && target == cmp.Or(resolved, path) {
		return named, nil
	}
	return path, nil
}
