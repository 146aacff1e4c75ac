// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// LaunchError is a launcher that failed before the function began, which is not the function's failure. Its class is
// fault.Unavailable.
type LaunchError struct {
	// Words are the launcher's.
	Words string
	// Advice is what to do about it.
	Advice string
}

func (e *LaunchError) Error() string {
	return "the launcher of sandboxes failed: " + e.Words + ": " + e.Advice
}

// maxWords bounds the excerpt of what a launcher has written, in bytes.
const maxWords = 600

// limits are the system's errors of exhausted limits.
var limits = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}

// tooLong is the hint for a command that the system does not execute.
const tooLong = "the image's arguments and variables are too long for this launcher of sandboxes"

// unfit are what launchers that work write about images that cannot be started, in lower case, with the probable cause.
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

// startError returns the error of a launcher that could not start a function, nil if out is anything else.
func (l *Launch) startError(out Outcome) error {
	words, failed := l.words(out)
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

// begins reports whether a line begins with a message, in which "*" is any text.
func begins(line, message string) bool {
	for i, part := range strings.Split(message, "*") {
		at := strings.Index(line, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		line = line[at+len(part):]
	}
	return true
}

// words returns what a launcher has written that failed before the function began: each line is one of its messages,
// or continues one. A function that has begun writes others.
func (l *Launch) words(out Outcome) (words string, failed bool) {
	if l == nil || out.ExitCode <= 0 || len(out.Output) > 0 || len(out.Log) == 0 {
		return "", false
	}
	words = strings.TrimSpace(string(out.Log))
	for i, line := range strings.Split(words, "\n") {
		own := func(message string) bool { return begins(line, message) }
		continued := i > 0 && strings.HasPrefix(line, " ")
		if !continued && !slices.ContainsFunc(l.Messages, own) {
			return "", false
		}
	}
	return excerpt.Middle(strings.ReplaceAll(words, "\n", "; "), maxWords), true
}
