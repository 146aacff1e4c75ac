// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docker/cli/cli/config/types"
	helpers "github.com/docker/docker-credential-helpers/credentials"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/redact"
)

const (
	// helperTimeout bounds the duration of a run of a credential helper.
	helperTimeout = 10 * time.Second
	// helperGrace is the time to wait for the rest of a killed helper's output, because child processes may keep it open.
	helperGrace = time.Second
	// tokenUser is the user name in a helper's answer if the secret is an identity token instead of a password.
	tokenUser = "<token>"
	// maxOutput and maxStderr limit the bytes that we read from a helper's output. Normal answers are a few tokens.
	maxOutput = 1 << 20
	maxStderr = 8 << 10
	// maxQuoted is the maximum length of a helper's standard error in an error message, in bytes.
	maxQuoted = 300
)

// errTooMuch is the error for a helper that writes more than maxOutput bytes.
var errTooMuch = errors.New("it wrote more than 1 MiB")

// runHelper queries the helper docker-credential-NAME for the credentials of server. The result is empty if the helper
// has no credentials. The error is of class fault.Unavailable if the helper does not answer within limit, and otherwise
// of class fault.Precondition. Errors omit the helper's standard output, and hide secrets in its standard error.
func runHelper(ctx context.Context, limit time.Duration, name, server string) (types.AuthConfig, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	program := "docker-credential-" + name
	stdout, stderr, err := runProgram(limited, program, server)
	var answer helpers.Credentials
	switch {
	case helpers.IsErrCredentialsNotFoundMessage(strings.TrimSpace(stdout)):
		return types.AuthConfig{}, nil
	case ctx.Err() != nil:
		return types.AuthConfig{}, fmt.Errorf("credential helper %s for %s did not answer: %w", program, server, ctx.Err())
	case limited.Err() != nil:
		return types.AuthConfig{}, fault.New(fault.Unavailable, "credential helper %s for %s did not answer within %v: "+
			"check that it can reach what it asks, and that it waits for no input", program, server, limit)
	case err != nil:
		return types.AuthConfig{}, fault.New(fault.Precondition, "credential helper %s for %s failed: %w%s%s",
			program, server, err, quoteStderr(stderr, stdout), adviceOnHelper(err))
	case json.Unmarshal([]byte(stdout), &answer) != nil: // the error may quote a secret
		return types.AuthConfig{}, badAnswer(program, server, "that is not valid JSON")
	case answer.Secret == "":
		return types.AuthConfig{}, badAnswer(program, server, "without a secret")
	case answer.Username == tokenUser:
		return types.AuthConfig{IdentityToken: answer.Secret}, nil
	}
	return types.AuthConfig{Username: answer.Username, Password: answer.Secret}, nil
}

// runProgram runs a credential helper in the process group of this program, because the function-runner kills all
// processes in other groups as leftovers of functions.
func runProgram(ctx context.Context, program, server string) (stdout, stderr string, err error) {
	answer, log := boundedBuffer{limit: maxOutput, err: errTooMuch}, boundedBuffer{limit: maxStderr}
	cmd := exec.CommandContext(ctx, program, "get")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(server), &answer, &log
	cmd.Cancel = func() error { return killTree(cmd.Process) }
	cmd.WaitDelay = helperGrace
	err = cmd.Run()
	if answer.full {
		err = errTooMuch
	}
	return answer.content.String(), log.content.String(), err
}

// boundedBuffer stores the first limit bytes that are written to it. Writing further bytes fails with the error err. If
// err is nil, the buffer discards further bytes.
type boundedBuffer struct {
	content bytes.Buffer // not embedded, because io.Copy would bypass Write
	limit   int
	err     error
	full    bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.limit-b.content.Len())
	b.content.Write(p[:n])
	if n < len(p) {
		b.full = true
		if b.err != nil {
			return n, b.err
		}
	}
	return len(p), nil
}

// killTree kills a process and its descendants. Killing only a credential helper is not enough, because helpers are
// often scripts, and a program that the script calls may hang.
func killTree(root *os.Process) error {
	below := listDescendants(root.Pid)
	err := root.Kill()
	for _, pid := range below {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have exited already
	}
	return err
}

// listDescendants returns the IDs of the processes that a process has started, directly or indirectly. It reads
// them from /proc, and returns none if /proc does not list them.
func listDescendants(pid int) []int {
	var below []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // Glob fails only for malformed patterns
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the process has exited
		}
		for field := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(field); err == nil {
				below = append(append(below, child), listDescendants(child)...)
			}
		}
	}
	return below
}

// badAnswer returns the error for a helper's answer that contains no valid credentials.
func badAnswer(program, server, what string) error {
	return fault.New(fault.Precondition, "credential helper %s for %s gave an answer %s: run it by hand, as docker does",
		program, server, what)
}

// adviceOnHelper returns advice for users if a helper's program is missing or not executable, or else an empty text.
func adviceOnHelper(err error) string {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return ": add it to the image of this service, or take it out of the docker configuration"
	}
	return ""
}

// answerWord matches words of at least four characters in a helper's answer. They may be parts of a secret.
var answerWord = regexp.MustCompile(`[^\s"'{}:,<>]{4,}`)

var answerFields = map[string]bool{"ServerURL": true, "Username": true, "Secret": true}

// quoteStderr formats a helper's standard error as the end of an error message, such as ": no access". It hides words
// that also occur in the helper's answer, because they may be secret. If stderr is empty, the result is empty.
func quoteStderr(stderr, answer string) string {
	for _, word := range answerWord.FindAllString(answer, 100) {
		if !answerFields[word] {
			stderr = strings.ReplaceAll(stderr, word, "[hidden]")
		}
	}
	line := redact.Line(redact.Text(stderr))
	if line == "" {
		return ""
	}
	return ": " + excerpt.Middle(line, maxQuoted)
}
