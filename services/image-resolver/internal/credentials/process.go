// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

const (
	// maxOutput bounds what is read of a helper: its answer is a few tokens long.
	maxOutput = 1 << 20
	// maxStderr bounds what is kept of a helper's standard error, and maxQuoted what
	// is quoted of it.
	maxStderr = 8 << 10
	maxQuoted = 300
)

// errTooMuch is a helper that writes without end.
var errTooMuch = errors.New("it wrote more than 1 MiB")

// process runs a helper, as its client library requires.
type process struct {
	ctx     context.Context //nolint:containedctx // client.Program has no place for one
	program string
	args    []string
	stdin   io.Reader
	stdout  limited
	stderr  limited
	err     error
}

func (p *process) Input(in io.Reader) { p.stdin = in }

// Output runs the helper, in the process group of this program: function-runner ends
// processes in other groups, which functions may have left behind.
func (p *process) Output() ([]byte, error) {
	cmd := exec.CommandContext(p.ctx, p.program, p.args...)
	kill := func() error { return killTree(cmd.Process) }
	p.stdout = limited{limit: maxOutput, full: func() { _ = kill() }}
	p.stderr = limited{limit: maxStderr}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, &p.stdout, &p.stderr
	cmd.Cancel, cmd.WaitDelay = kill, helperGrace
	p.err = cmd.Run()
	if p.stdout.over {
		p.err = errTooMuch
	}
	return p.stdout.taken.Bytes(), p.err
}

// killTree ends a process and what it has started: helpers are scripts at times, and
// what hangs is a program that they call.
func killTree(root *os.Process) error {
	below := descendants(root.Pid)
	err := root.Kill()
	for _, pid := range below {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	return err
}

// descendants returns the processes below one, as far as the kernel lists them.
func descendants(pid int) []int {
	var below []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // it has ended
		}
		for field := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(field); err == nil {
				below = append(append(below, child), descendants(child)...)
			}
		}
	}
	return below
}

// limited takes the beginning of what is written.
type limited struct {
	taken bytes.Buffer // not embedded: io.Copy would fill it past Write
	limit int
	// full, if not nil, is called once there is more.
	full func()
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.limit-l.taken.Len())
	l.taken.Write(p[:n])
	if n < len(p) && !l.over {
		l.over = true
		if l.full != nil {
			l.full()
		}
	}
	return len(p), nil
}

// revealing is what may be secret in standard error: what stands after a word for secrets
// or in a URL, and what looks like a token.
var revealing = []struct {
	secret *regexp.Regexp
	shown  string
}{
	{
		regexp.MustCompile(
			`(?i)((?:password|passwd|secret|token|authorization|api[-_]?key)["']?\s*[:=]\s*)` +
				`("[^"]*"|'[^']*'|(?:basic |bearer )?[^\s,;}"']+)`,
		),
		"$1[hidden]",
	},
	{regexp.MustCompile(`(?i)\b(basic|bearer)\s+[\w+/=.~-]{16,}`), "$1 [hidden]"},
	{regexp.MustCompile(`\beyJ[\w-]{8,}[\w.-]*`), "[hidden]"},
	{regexp.MustCompile(`://[^/\s@"]+@`), "://[hidden]@"},
	{regexp.MustCompile(`\?[^\s"'<>?]*=[^\s"'<>]*`), ""},
}

// answerWord finds a text in a helper's answer.
var answerWord = regexp.MustCompile(`[^\s"'{}:,<>]{4,}`)

// stderrText returns what the helper wrote to its standard error, on one line and after
// a colon, or nothing. What it also wrote to its standard output is its answer,
// which stays secret.
func (p *process) stderrText() string {
	said := p.stderr.taken.String()
	for _, word := range answerWord.FindAllString(p.stdout.taken.String(), 100) {
		if !harmless[word] {
			said = strings.ReplaceAll(said, word, "[hidden]")
		}
	}
	for _, r := range revealing {
		said = r.secret.ReplaceAllString(said, r.shown)
	}
	words := strings.FieldsFunc(
		strings.ToValidUTF8(said, "?"),
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) },
	)
	if len(words) == 0 {
		return ""
	}
	return ": " + excerpt.Middle(strings.Join(words, " "), maxQuoted)
}

// harmless are the names of an answer's fields.
var harmless = map[string]bool{"ServerURL": true, "Username": true, "Secret": true}
