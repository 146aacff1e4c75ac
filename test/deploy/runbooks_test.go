// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// searched is what a command of a runbook searches a log for.
var searched = regexp.MustCompile(`grep (-i |-E )?(?:'([^']+)'|(\S+))$`)

// TestRunbooksSearchWhatProgramsLog checks the commands that read logs: the programs write what they search for, and
// kubectl prints more than the last ten lines of each pod.
func TestRunbooksSearchWhatProgramsLog(t *testing.T) {
	source := strings.ToLower(goSource(t))
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, page := range pages {
		for line := range strings.Lines(string(mustRead(t, page))) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "kubectl") || !strings.Contains(line, " logs ") {
				continue
			}
			commands++
			if !strings.Contains(line, " --tail=") {
				t.Errorf("%s: %q prints ten lines of each pod: add --tail", filepath.Base(page), line)
			}
			match := searched.FindStringSubmatch(line)
			if match == nil {
				continue
			}
			for text := range strings.SplitSeq(match[2]+match[3], "|") {
				if !strings.Contains(source, strings.ToLower(text)) {
					t.Errorf("%s: no program logs %q", filepath.Base(page), text)
				}
			}
		}
	}
	if commands < 8 {
		t.Errorf("found %d commands: do the pages have another form now?", commands)
	}
}
