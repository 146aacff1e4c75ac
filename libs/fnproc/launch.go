// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"os"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// Launch is how a command's program starts the function in a sandbox: a launcher, such as bubblewrap,
// which confines the function and ends with it. Its exit code is the function's, or 128 and the
// number of the signal that ended the function. It must leave nothing running once the processes of
// its group are killed.
type Launch struct {
	// Name distinguishes the functions that one launcher starts.
	Name string
	// Key distinguishes commands by their arguments, which may be long: it is the same for the same ones.
	// Empty compares the arguments themselves.
	Key string
	// Messages are how the lines begin that the launcher itself writes when it fails, such as "bwrap: ", with "*" for
	// any text; none if it writes none of its own.
	Messages []string
	Advice   string
	// Files are opened for reading for each process, which has them as descriptors from 3 on.
	Files []string
	// User and Group are what the launcher runs as; user zero is the runner's own, and its group.
	User, Group uint32
	// Groups are control groups, of which each process gets one for itself; nil for none.
	Groups *cgroup.Groups
}

// Function returns the name of the function: where many have the same program, it is not the path.
func (c Command) Function() string {
	if c.Launch != nil {
		return c.Launch.Name
	}
	return c.Path
}

// parts returns what distinguishes a command from others with the same program.
func (c Command) parts() []string {
	switch {
	case c.Launch == nil:
		return c.Args
	case c.Launch.Key == "":
		return append([]string{c.Launch.Name}, c.Args...)
	default:
		return []string{c.Launch.Name, c.Launch.Key}
	}
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

// group returns a control group for a process, nil without.
func (l *Launch) group() (*cgroup.Group, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // nil limits nothing
	}
	return l.Groups.Take()
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
