// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Launch is how a command's program starts the function in a sandbox: a launcher, such as bubblewrap,
// which confines the function and ends with it. Its exit code is the function's, or 128 and the
// number of the signal that ended the function. It must leave nothing running once the processes of
// its group are killed.
type Launch struct {
	// Name distinguishes the functions that one launcher starts.
	Name string
	// Message is how each message of the launcher itself begins, such as "bwrap: "; empty if that is not
	// known.
	Message string
	// Files are opened for reading for each process, which has them as descriptors from 3 on.
	Files []string
	// User and Group are what the launcher runs as; user zero is the runner's own, and its group.
	User, Group uint32
}

// Function returns the name of the function: where many have the same program, it is not the path.
func (c Command) Function() string {
	if c.Launch != nil {
		return c.Launch.Name
	}
	return c.Path
}

// name returns what distinguishes a launcher's functions; empty without a launcher.
func (l *Launch) name() string {
	if l == nil {
		return ""
	}
	return l.Name
}

// open opens the files that the launcher inherits. The caller closes them.
func (l *Launch) open() ([]*os.File, error) {
	if l == nil {
		return nil, nil
	}
	files := make([]*os.File, 0, len(l.Files))
	for _, path := range l.Files {
		file, err := os.Open(path)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// credential returns the user to run as, nil for the runner's own.
func (l *Launch) credential() *syscall.Credential {
	if l == nil || l.User == 0 {
		return nil
	}
	return &syscall.Credential{Uid: l.User, Gid: l.Group}
}

// signaled is what shells and containers add to the number of a signal.
const signaled = 128

// translate makes an outcome of a launcher that of the function.
func (l *Launch) translate(out *Outcome) {
	if l == nil || out.ExitCode <= signaled || out.ExitCode > signaled+64 {
		return
	}
	out.Signal = syscall.Signal(out.ExitCode - signaled)
	out.ExitCode, out.Status = -1, "signal: "+out.Signal.String()
}

// limits are the system's errors of exhausted limits.
var limits = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}

// startError returns the error of a launcher that could not start a function because of a limit, nil if out is
// anything else. All that such a launcher has written is one message about it.
func (l *Launch) startError(out Outcome) error {
	if l == nil || l.Message == "" || out.ExitCode <= 0 || len(out.Output) > 0 {
		return nil
	}
	message, ok := strings.CutPrefix(strings.TrimSpace(string(out.Log)), l.Message)
	if !ok || strings.Contains(message, "\n") {
		return nil
	}
	for _, errno := range limits {
		if strings.HasSuffix(strings.ToLower(message), errno.Error()) {
			return exhaustedError(l.Name, &fs.PathError{Op: "start the sandbox of", Path: l.Name, Err: errno})
		}
	}
	return nil
}
