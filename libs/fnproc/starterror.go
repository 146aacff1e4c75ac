package fnproc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// StartError is a function that could not be started.
type StartError struct {
	Path string
	Err  error  // the system's error
	Hint string // what is probably wrong, if more is known than Err says
}

func (e *StartError) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Err, e.Hint)
}

func (e *StartError) Unwrap() error { return e.Err }

// startError adds to the system's words, which are the same for different mistakes,
// what a look at the file tells.
func startError(cmd Command, err error) error {
	start := &StartError{Path: cmd.Path, Err: err, Hint: hint(cmd, err)}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return fault.New(fault.Unavailable, "%w", start)
	}
	return start
}

// hint guesses why cmd does not start.
func hint(cmd Command, err error) string {
	if cmd.Dir != "" {
		if _, dirErr := os.Stat(cmd.Dir); dirErr != nil {
			return fmt.Sprintf("the working directory is not usable: %v", dirErr)
		}
	}
	file, statErr := os.Stat(cmd.Path)
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return "the file is for another architecture, or a script without a first line that names its interpreter"
	case statErr != nil:
		return ""
	case file.IsDir():
		return "it is a directory"
	case errors.Is(err, fs.ErrNotExist):
		return "the file is there, but not the interpreter that its first line names, or its dynamic loader"
	case errors.Is(err, fs.ErrPermission) && file.Mode()&0o111 == 0:
		return "the file is not executable"
	}
	return ""
}
