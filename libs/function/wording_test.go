// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// TestImageNamesHaveOneLimit compares the limit with package imagename's, whose parser function pods do not contain.
func TestImageNamesHaveOneLimit(t *testing.T) {
	if function.MaxImageBytes != imagename.MaxBytes {
		t.Errorf("function pods accept names of %d bytes, and package imagename of %d",
			function.MaxImageBytes, imagename.MaxBytes)
	}
}

// validator is a function that finds so many things, each of so many bytes, logs so
// many bytes and exits 1.
func validator(t *testing.T, findings, size, logged int) fnproc.Command {
	t.Helper()
	var out strings.Builder
	out.WriteString("kind: ResourceList\nresults:\n")
	for i := range findings {
		fmt.Fprintf(&out, "- message: finding-%d %s.\n  severity: error\n", i, strings.Repeat("m", size))
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"out": out.String(), "log": strings.Repeat("l", logged)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return failing(dir)
}

// failing is a function that writes the files of a directory: log and out.
func failing(dir string) fnproc.Command {
	return fnproc.Command{
		Path: "/bin/sh", Args: []string{"-c", "cat log >&2; cat out; exit 1"}, Dir: dir, Env: []string{"PATH=/bin:/usr/bin"},
	}
}

// TestResultsAreTold has validators whose callers read nothing but the status message:
// the results are whole, and results that do not fit are counted.
func TestResultsAreTold(t *testing.T) {
	const image = "registry.example.com/functions/validate:v1.2.3"
	tests := map[string]struct {
		findings, size, logged int
		wording                function.Wording
		least                  int // findings in the text, at least
		cuts                   int // parts of the message without their middle
		reason                 string
	}{
		"all fit":          {40, 100, 100, function.WrapperWording, 40, 0, "40 findings of 130 bytes are no 8 KiB"},
		"with a long log":  {40, 100, 1 << 20, function.WrapperWording, 30, 1, "the log takes three of the 8 KiB"},
		"too many":         {1000, 100, 0, function.WrapperWording, 55, 0, ""},
		"too large":        {2, 10000, 0, function.WrapperWording, 1, 1, "the first is shown as far as it fits"},
		"exec":             {1000, 100, 0, function.ExecWording, 55, 0, "without a log the results are shown there, too"},
		"exec with a log":  {40, 100, 100, function.ExecWording, 40, 0, "the log does not have them"},
		"exec, log cut":    {40, 100, 1 << 20, function.ExecWording, 30, 1, "the log takes three of the 8 KiB"},
		"one, almost full": {1, 7800, 0, function.WrapperWording, 1, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			wording := func(cfg *function.ServiceConfig) { cfg.Wording = tc.wording }
			_, err := run(t, image, validator(t, tc.findings, tc.size, tc.logged), wording)
			// As in a pod: the gateway puts its own words before it.
			err = rpcfault.ToConnect(fmt.Errorf("unable to evaluate %s with pod evaluator: %w", image, err))
			cerr, ok := errors.AsType[*connect.Error](err)
			if !ok {
				t.Fatal(err)
			}
			said := cerr.Message()
			shown := strings.Count(said, "finding-")
			if shown < tc.least {
				t.Errorf("%d findings are shown, want %d: %s", shown, tc.least, tc.reason)
			}
			if whole := strings.Count(said, "mm."); whole != shown && tc.size < 1000 {
				t.Errorf("%d of %d findings are whole", whole, shown)
			}
			more := fmt.Sprintf("… and %d more", tc.findings-shown)
			if shown > 0 && strings.Contains(said, more) != (shown < tc.findings) {
				t.Errorf("%d of %d are shown: %q in the text is %v", shown, tc.findings, more, shown == tc.findings)
			}
			if cuts := strings.Count(said, "bytes left out"); cuts != tc.cuts {
				t.Errorf("%d parts are cut in the middle, want %d:\n%s", cuts, tc.cuts, said)
			}
		})
	}
}

func TestResolvedImage(t *testing.T) {
	_, err := run(t, "fn:v1", command(t, "exit1"))
	received := function.Received(err.Error(), &functionrunnerv1.FunctionFailure{Image: "fn:v1"})
	for name, err := range map[string]error{"own": err, "another process's": received} {
		resolved := function.Resolved(fmt.Errorf("evaluate: %w", err), "example.com/fn:v1")
		failure, ok := errors.AsType[rpcfault.Detailer](resolved)
		if !ok {
			t.Fatal(err)
		}
		detail, _ := failure.Detail().(*functionrunnerv1.FunctionFailure)
		if detail.GetImage() != "example.com/fn:v1" || !strings.Contains(failure.Error(), `function "fn:v1"`) {
			t.Errorf("%s: detail %v and text %q, want the resolved name in one and the given one in the other",
				name, detail, failure)
		}
		if original, _ := errors.AsType[*function.Failure](resolved); original == nil || original.Image != "fn:v1" {
			t.Errorf("%s: the failure itself is %v, want it unchanged and in the chain", name, original)
		}
	}
	if err := function.Resolved(nil, "fn"); err != nil {
		t.Errorf("Resolved(nil) = %v", err)
	}
}

// TestExecResultsFollowTheLog has functions whose log may have their results already.
func TestExecResultsFollowTheLog(t *testing.T) {
	const words = `Failed to execute function "fn": exit status 1 (%s)`
	tests := map[string]struct{ reason, log, out, want string }{
		"not logged": {
			"functions of the SDK say why in results only", "error: function failure",
			"- message: no replicas\n  severity: error\n",
			"; structured results: [error]: no replicas",
		},
		"logged": {"nothing is shown twice", "error: no replicas", "- message: no replicas\n  severity: error\n", ""},
		"one of them": {
			"only what is missing", "error: first", "- message: first\n- message: second\n",
			"; structured results: [info]: second",
		},
		"no message": {"nothing to show", "error", "- severity: error\n", ""},
		"none":       {"Porch's own words", "error", "- {}\n", ""},
		"not a list": {"what does not parse has no results", "error", "- message: [a]\n", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{"out": "kind: ResourceList\nresults:\n" + tc.out, "log": tc.log} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := run(t, "fn", failing(dir), func(cfg *function.ServiceConfig) { cfg.Wording = function.ExecWording })
			if want := fmt.Sprintf(words, tc.log) + tc.want; err == nil || err.Error() != want {
				t.Errorf("error %v, want %q: %s", err, want, tc.reason)
			}
		})
	}
}
