// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// look is how an on-call engineer gets from an alert to the cause, as docs/runbooks/README.md has it: the panel that
// the alert's page names, and the output of the page's commands.
type look struct {
	page, panel string
	cause       *regexp.Regexp
}

// engineer is on call for a place, with the dashboards, the runbooks, kubectl and fnctl.
type engineer struct {
	at  place
	bin string // directory with fnctl
}

// onCall returns the place's engineer.
func (p place) onCall(t *testing.T) engineer {
	t.Helper()
	return engineer{p, filepath.Dir(gobuild.Program(t, filepath.Join(root, "fnctl"), "."))}
}

// finds checks that the panel shows something, and that the page's commands print the cause.
func (e engineer) finds(t *testing.T, prometheus prometheus, l look) {
	t.Helper()
	ctx := suite.Context(t)
	panel := slices.DeleteFunc(panelQueries(t, e.at.system, slices.Collect(maps.Keys(rare))), func(q panelQuery) bool {
		return q.panel != l.panel
	})
	prometheus.awaitPanels(ctx, t, panel)
	suite.Until(ctx, t, fmt.Sprintf("the commands of %s show %q", l.page, l.cause), func() (bool, string) {
		output := e.run(t, l.page)
		return l.cause.MatchString(output), output
	})
	t.Logf("%s: the cause %q is in the output of its commands", l.page, l.cause)
}

// run runs the commands of a page, and returns what they print. Some fail during an incident.
func (e engineer) run(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs/runbooks", page+".md"))
	if err != nil {
		t.Fatal(err)
	}
	_, commands, found := strings.Cut(string(content), "\n```\n")
	commands, _, _ = strings.Cut(commands, "\n```")
	if !found {
		t.Fatalf("%s has no commands", page)
	}
	names := strings.NewReplacer(usual.system, e.at.system, usual.functions, e.at.functions)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", names.Replace(commands))
	cmd.Env = append(cmd.Environ(), "PATH="+e.bin+":"+os.Getenv("PATH"), "APP=pod-manager")
	output, _ := cmd.CombinedOutput()
	return string(output)
}
