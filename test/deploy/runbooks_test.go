// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// searched is what a command of a runbook searches a log for.
var searched = regexp.MustCompile(`grep (-i |-E )?(?:'([^']+)'|(\S+))$`)

// TestRunbooksSearchWhatProgramsLog checks the commands that read logs: the programs write what they search for, and
// kubectl prints more than the last ten lines of each pod.
func TestRunbooksSearchWhatProgramsLog(t *testing.T) {
	source := strings.ToLower(goSource(t))
	commands := 0
	for _, c := range runbookCommands(t) {
		if !strings.HasPrefix(c.line, "kubectl") || !strings.Contains(c.line, " logs ") {
			continue
		}
		commands++
		if !strings.Contains(c.line, " --tail=") {
			t.Errorf("%s: %q prints ten lines of each pod: add --tail", c.page, c.line)
		}
		match := searched.FindStringSubmatch(c.line)
		if match == nil {
			continue
		}
		for text := range strings.SplitSeq(match[2]+match[3], "|") {
			if !strings.Contains(source, strings.ToLower(text)) {
				t.Errorf("%s: no program logs %q", c.page, text)
			}
		}
	}
	if commands < 8 {
		t.Errorf("found %d commands: do the pages have another form now?", commands)
	}
}

// command is a line of a page's commands.
type command struct{ page, line string }

// runbookCommands returns the commands of all pages.
func runbookCommands(t *testing.T) (commands []command) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		_, block, _ := strings.Cut(string(mustRead(t, page)), "\n```\n")
		block, _, _ = strings.Cut(block, "\n```")
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(line, "   #")
			commands = append(commands, command{filepath.Base(page), strings.TrimSpace(line)})
		}
	}
	return commands
}

// TestRunbooksUseFnctlAsItIs has fnctl read its commands in the pages. They say where the gateway is: on-call engineers
// have none on their own machine.
func TestRunbooksUseFnctlAsItIs(t *testing.T) {
	fnctl := gobuild.Program(t, filepath.Join(root, "fnctl"), ".")
	calls := 0
	for _, c := range runbookCommands(t) {
		words := strings.Fields(c.line)
		if len(words) == 0 || words[0] != "fnctl" {
			continue
		}
		calls++
		// With --help, fnctl parses all flags and runs nothing.
		out, err := exec.CommandContext(t.Context(), fnctl, append(words[1:], "--help")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "fnctl "+words[1]) {
			t.Errorf("%s: %q: %v\n%s", c.page, c.line, err, out)
		}
		if gateway := words[1] == "pods" || words[1] == "top"; gateway && !slices.Contains(words, "porch-system") {
			t.Errorf("%s: %q asks a gateway of this machine: add --namespace porch-system", c.page, c.line)
		}
	}
	if calls < 8 {
		t.Errorf("found %d calls of fnctl: do the pages have another form now?", calls)
	}
}
