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

// LimitError reports a function that was killed because its output or its temporary files exceeded a limit. Its
// class is fault.Exhausted.
type LimitError struct {
	Stream string // "output", "temporary files", or the path of a directory
	Unit   string // unit of Limit, bytes if empty
	Limit  int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the function was killed: it wrote more than the %d %s of %s that are allowed",
		e.Limit, cmp.Or(e.Unit, "bytes"), e.Stream)
}

// StoppedError reports a function that was killed, or not even started, because its context was canceled.
type StoppedError struct {
	Err   error // context.Canceled or context.DeadlineExceeded
	Cause error // the context's cause; equals Err if the context has no other cause
	// OutputHeld is true if the function itself had exited, but a process that it started still kept its output open.
	OutputHeld bool
}

func (e *StoppedError) Error() string { return fmt.Sprintf("the evaluation was stopped: %v", e.Cause) }

// Unwrap returns both errors. Cause is first, because fault.Of uses the class of the first error with a class.
func (e *StoppedError) Unwrap() []error { return []error{e.Cause, e.Err} }

func limitError(stream string, limit int64) error {
	return fault.New(fault.Exhausted, "%w", &LimitError{Stream: stream, Limit: limit})
}

// stoppedError returns the error of an evaluation whose context was canceled.
func stoppedError(ctx context.Context) error {
	return &StoppedError{Err: ctx.Err(), Cause: context.Cause(ctx)}
}

// StartError reports a function that could not be started. If memory, processes or open files had run out, the error's
// class is fault.Exhausted, and it contains a retry hint.
type StartError struct {
	Path string
	Err  error  // the system's error
	Hint string // probable cause; may be empty
}

func (e *StartError) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Err, e.Hint)
}

func (e *StartError) Unwrap() error { return e.Err }

// startError returns the error for a command that the system could not start because of err. It adds the probable
// cause, because the system returns the same error code for different mistakes.
func startError(cmd Command, l *Launch, err error) error {
	if isExhausted(err) {
		return exhaustedError(cmd.Path, err)
	}
	switch {
	case l.Direct:
		return &StartError{Path: cmd.Path, Err: err, Hint: guessCause(cmd, err)}
	case errors.Is(err, syscall.E2BIG):
		return &StartError{Path: l.Name, Err: err, Hint: tooLong}
	default: // the launcher was not started
		return fault.New(fault.Unavailable, "%w", &LaunchError{Words: err.Error(), Advice: l.Advice})
	}
}

// exhaustedError returns the error for a program that could not be started because memory, processes or open files had
// run out.
func exhaustedError(path string, err error) error {
	start := &StartError{Path: path, Err: err, Hint: "the limit of processes, open files or memory is reached: " +
		"try again later, or raise the container's limits"}
	return fault.WithRetryAfter(fault.New(fault.Exhausted, "%w", start), tryAgain)
}

// tryAgain is the retry hint for a function that could not be started because memory, processes or open files had run
// out. It is short because other functions soon exit and free these resources.
const tryAgain = time.Second

// limits contains the system's errors for exhausted memory, processes and open files.
var limits = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}

// isExhausted reports whether err means that the container or the machine ran out of a resource.
func isExhausted(err error) bool {
	return slices.ContainsFunc(limits, func(limit syscall.Errno) bool { return errors.Is(err, limit) })
}

// OtherFormat is the probable cause that we show to users if the system does not recognize the format of a program.
const OtherFormat = "the file is for another architecture, or a script without a first line that names its interpreter"

// guessCause returns the probable cause of the system's error err for cmd. It returns an empty string if it recognizes
// no cause.
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

// LaunchError reports that a launcher such as bubblewrap failed before it started the function. The function did not
// cause the failure, so the class is fault.Unavailable.
type LaunchError struct {
	// Words is the message that the launcher wrote to stderr.
	Words string
	// Advice is a remedy for users, such as a setting to change.
	Advice string
}

func (e *LaunchError) Error() string {
	return "the launcher of sandboxes failed: " + e.Words + ": " + e.Advice
}

// maxWords is the maximum length of a launcher's message in a LaunchError, in bytes.
const maxWords = 600

// tooLong is the probable cause that we show to users if the system rejects a launcher's command line as too long.
const tooLong = "the image's arguments and variables are too long for this launcher of sandboxes"

// unfit lists faults of images that make a sandbox launcher fail. Each entry contains parts of the launcher's message,
// in lower case, and the probable cause that we show to users.
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

// startError returns the error of a sandbox launcher that exited without starting the function. The error's class
// depends on the launcher's message. startError returns nil if the function was started.
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

// matchesMessage reports whether a line begins with the pattern message, in which "*" matches any text.
func matchesMessage(line, message string) bool {
	for i, part := range strings.Split(message, "*") {
		at := strings.Index(line, part)
		if at < 0 || (i == 0 && at > 0) {
			return false
		}
		line = line[at+len(part):]
	}
	return true
}

// failureText returns the log of a sandbox launcher that failed before it started the function. Such a log consists
// only of known messages of the launcher and their continuation lines. If the log contains any other line, the function
// was started, and the result failed is false.
func (l *Launch) failureText(out Outcome) (words string, failed bool) {
	if l.Direct || out.ExitCode <= 0 || len(out.Output) > 0 || len(out.Log) == 0 {
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
