// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// LimitError is a function that was killed because it wrote too much. Its class is
// fault.Exhausted.
type LimitError struct {
	Stream string // "output", or a directory
	Unit   string // unit of Limit, bytes if empty
	Limit  int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the function was killed: it wrote more than the %d %s of %s that are allowed",
		e.Limit, cmp.Or(e.Unit, "bytes"), e.Stream)
}

// StoppedError reports a function that was killed, or not even started, because the context was canceled.
type StoppedError struct {
	Err   error // context.Canceled or context.DeadlineExceeded
	Cause error // the context's cause, Err itself if none was given
	// OutputHeld is true if the function had exited while a process that it started kept its output open.
	OutputHeld bool
}

func (e *StoppedError) Error() string { return fmt.Sprintf("the evaluation was stopped: %v", e.Cause) }

// Unwrap returns the cause first, so that its class counts.
func (e *StoppedError) Unwrap() []error { return []error{e.Cause, e.Err} }

func limitError(stream string, limit int64) error {
	return fault.New(fault.Exhausted, "%w", &LimitError{Stream: stream, Limit: limit})
}

// stoppedError returns the error of an evaluation whose context was canceled.
func stoppedError(ctx context.Context) error {
	return &StoppedError{Err: ctx.Err(), Cause: context.Cause(ctx)}
}

// StartError is a function that could not be started. Its class is fault.Exhausted, with a
// hint when to try again, if there was no memory, process or file left for it.
type StartError struct {
	Path string
	Err  error  // the system's error
	Hint string // probable cause, or empty if Err is all that is known
}

func (e *StartError) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Err, e.Hint)
}

func (e *StartError) Unwrap() error { return e.Err }

// startError adds a hint from the file to the system's error, which is the same for different mistakes.
func startError(cmd Command, err error) error {
	if isExhausted(err) {
		return exhaustedError(cmd.Path, err)
	}
	l := cmd.Launch
	if l != nil && l.Direct {
		l = nil
	}
	switch {
	case l != nil && errors.Is(err, syscall.E2BIG):
		return &StartError{Path: l.Name, Err: err, Hint: tooLong}
	case l != nil: // the launcher did not start, or the machine lacks something that it needs
		return fault.New(fault.Unavailable, "%w", &LaunchError{Words: err.Error(), Advice: l.Advice})
	default:
		return &StartError{Path: cmd.Path, Err: err, Hint: guessCause(cmd, err)}
	}
}

// exhaustedError returns the error of a function for which the system had no resources left.
func exhaustedError(path string, err error) error {
	start := &StartError{Path: path, Err: err, Hint: "the limit of processes, open files or memory is reached: " +
		"try again later, or raise the container's limits"}
	return fault.WithRetryAfter(fault.New(fault.Exhausted, "%w", start), tryAgain)
}

// tryAgain is the retry hint when the process limit or memory is exhausted: other functions exit soon.
const tryAgain = time.Second

// isExhausted reports whether the container, or the machine, ran out of a resource.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// OtherFormat is the hint for a file that the system does not execute.
const OtherFormat = "the file is for another architecture, or a script without a first line that names its interpreter"

// guessCause returns the probable cause why cmd does not start.
func guessCause(cmd Command, err error) string {
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

// LaunchError reports a launcher that failed before it started the function, so the function did not fail. Its class
// is fault.Unavailable.
type LaunchError struct {
	// Words are the launcher's.
	Words string
	// Advice is the remedy, for users.
	Advice string
}

func (e *LaunchError) Error() string {
	return "the launcher of sandboxes failed: " + e.Words + ": " + e.Advice
}

// maxWords bounds the excerpt of a launcher's text, in bytes.
const maxWords = 600

// limits are the system's errors of exhausted limits.
var limits = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}

// tooLong is the hint for a command that the system does not execute.
const tooLong = "the image's arguments and variables are too long for this launcher of sandboxes"

// unfit lists texts by which working launchers report images that cannot be started, in lower case, with the probable
// cause.
var unfit = []struct {
	texts []string
	hint  string
}{
	{[]string{"argument list too long"}, tooLong},
	{
		[]string{"can't chdir to ", "chdir `", "chdir to `", "chdir to cwd", "container init: mkdir "},
		"the image's working directory is not there: /dev, /proc and /tmp are the sandbox's own",
	},
	{
		[]string{"execvp ", "exec: ", "exec /", "exec container process", "executable", "failed to load /"},
		"the program is for another architecture, or the image lacks the interpreter that its first line names, " +
			"or its dynamic loader",
	},
}

// startError returns the error of a launcher that could not start a function, or nil if the function was started.
func (l *Launch) startError(out Outcome) error {
	words, failed := l.failureText(out)
	if !failed {
		return nil
	}
	lower := strings.ToLower(words)
	for _, errno := range limits {
		if strings.Contains(lower, ": "+errno.Error()) {
			return exhaustedError(l.Name, &fs.PathError{Op: "start the sandbox of", Path: l.Name, Err: errno})
		}
	}
	for _, u := range unfit {
		if slices.ContainsFunc(u.texts, func(text string) bool { return strings.Contains(lower, text) }) {
			return &StartError{Path: l.Name, Err: errors.New(words), Hint: u.hint}
		}
	}
	return fault.New(fault.Unavailable, "%w", &LaunchError{Words: words, Advice: l.Advice})
}

// matchesMessage reports whether a line begins with a message, in which "*" matches any text.
func matchesMessage(line, message string) bool {
	for i, part := range strings.Split(message, "*") {
		at := strings.Index(line, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		line = line[at+len(part):]
	}
	return true
}

// failureText returns the text of a launcher that failed before it started the function: each line matches a message
// of the launcher, or continues the line before. A function that has started writes other lines.
func (l *Launch) failureText(out Outcome) (words string, failed bool) {
	if l == nil || out.ExitCode <= 0 || len(out.Output) > 0 || len(out.Log) == 0 {
		return "", false
	}
	words = strings.TrimSpace(string(out.Log))
	for i, line := range strings.Split(words, "\n") {
		own := func(message string) bool { return matchesMessage(line, message) }
		continued := i > 0 && strings.HasPrefix(line, " ")
		if !continued && !slices.ContainsFunc(l.Messages, own) {
			return "", false
		}
	}
	return excerpt.Middle(strings.ReplaceAll(words, "\n", "; "), maxWords), true
}
