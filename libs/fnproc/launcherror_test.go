// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// failing returns the script of a launcher that writes these lines and fails.
func failing(lines ...string) string {
	return "cat >&2 <<'END'\n" + strings.Join(lines, "\n") + "\nEND\nexit 1"
}

// TestLaunchersThatFail has launchers fail before they start a function, and functions that fail with a text like
// theirs. The class of what only the function can have failed with is none.
func TestLaunchersThatFail(t *testing.T) {
	const (
		busy    = "bwrap: Creating new namespace failed: Resource temporarily unavailable"
		runc    = `time="2026-01-01T00:00:00Z" level=error msg="runc run failed: `
		begun   = fault.Class(-1) // no error: it is the function's own
		program = fault.Class(-2) // the image's program cannot be started
	)
	tests := map[string]struct {
		script string
		want   fault.Class
		words  string
	}{
		"processes":            {failing(busy), fault.Exhausted, "try again later"},
		"memory":               {failing("bwrap: fork: Cannot allocate memory"), fault.Exhausted, "try again later"},
		"processes, quoted":    {failing(runc + `clone: resource temporarily unavailable"`), fault.Exhausted, "again"},
		"unknown option":       {failing("bwrap: Unknown option --x"), fault.Unavailable, "Unknown option --x: do this"},
		"several lines":        {failing("mount: /x: wrong fs type.", "       dmesg(1)"), fault.Unavailable, "; "},
		"two programs":         {failing("mount: /x: denied.", "bwrap: failed"), fault.Unavailable, "denied.; bwrap: failed"},
		"no program":           {failing("bwrap: execvp /fn: No such file or directory"), program, "dynamic loader"},
		"no program, by runc":  {failing(runc + `exec: \"/fn\": exec format error"`), program, "another architecture"},
		"a function's text":    {failing("fork: Cannot allocate memory"), begun, ""},
		"a function after it":  {failing(busy, "begun"), begun, ""},
		"a function before it": {failing("begun", busy), begun, ""},
		"output":               {"echo x\n" + failing(busy), begun, ""},
		"no text":              {"exit 1", begun, ""},
		"success":              {"echo '" + busy + "' >&2", begun, ""},
		"much text":            {failing("bwrap: " + strings.Repeat("x", 5000)), fault.Unavailable, "do this"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := launched(tc.script, &fnproc.Launch{
				Name: "fn@sha256:1", Messages: []string{"bwrap: ", "mount: ", `time="`}, Advice: "do this",
			})
			_, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
			_, isStart := errors.AsType[*fnproc.StartError](err)
			_, isLaunch := errors.AsType[*fnproc.LaunchError](err)
			got := fault.Of(err)
			switch {
			case err == nil:
				got = begun
			case isStart && got != fault.Exhausted:
				got = program
			}
			if got != tc.want || isLaunch != (tc.want == fault.Unavailable) {
				t.Fatalf("class %v, want %v: %v", got, tc.want, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.words) || len(err.Error()) > 1000) {
				t.Errorf("error %v, want %q", err, tc.words)
			}
		})
	}
}

// TestUnknownLaunchersThatFail has a launcher whose messages are not known: what it writes may be the function's.
func TestUnknownLaunchersThatFail(t *testing.T) {
	cmd := launched(failing("bwrap: failed"), &fnproc.Launch{Name: "fn"})
	_, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
	if err != nil {
		t.Error(err)
	}
}
