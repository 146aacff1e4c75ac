// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// StartError is a function that could not be started. Its class is fault.Exhausted, with a
// hint when to try again, if there was no memory, process or file left for it.
type StartError struct {
	Path string
	Err  error  // the system's error
	Hint string // the probable cause, if more is known than Err
}

func (e *StartError) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Err, e.Hint)
}

func (e *StartError) Unwrap() error { return e.Err }

// startError adds what the file shows to the system's words, which are the same for different
// mistakes.
func startError(cmd Command, err error) error {
	if exhausted(err) {
		return exhaustedError(cmd.Path, err)
	}
	l := cmd.Launch
	if l != nil && l.Direct {
		l = nil
	}
	switch {
	case l != nil && errors.Is(err, syscall.E2BIG):
		return &StartError{Path: l.Name, Err: err, Hint: tooLong}
	case l != nil: // what does not start is the launcher, or the machine lacks what it needs
		return fault.New(fault.Unavailable, "%w", &LaunchError{Words: err.Error(), Advice: l.Advice})
	default:
		return &StartError{Path: cmd.Path, Err: err, Hint: hint(cmd, err)}
	}
}

// exhaustedError is the error of a function for which nothing was left.
func exhaustedError(path string, err error) error {
	start := &StartError{Path: path, Err: err, Hint: "the limit of processes, open files or memory is reached: " +
		"try again later, or raise the container's limits"}
	return fault.WithRetryAfter(fault.New(fault.Exhausted, "%w", start), tryAgain)
}

// tryAgain is the retry hint when the process limit or memory is exhausted: other functions
// end soon.
const tryAgain = time.Second

// exhausted reports whether the container, or the machine, ran out of a resource.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// OtherFormat is the hint for a file that the system does not execute.
const OtherFormat = "the file is for another architecture, or a script without a first line that names its interpreter"

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
		return OtherFormat
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
