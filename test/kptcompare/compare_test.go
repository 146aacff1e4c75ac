// SPDX-License-Identifier: Apache-2.0

// Package kptcompare runs packages through fnctl and through kpt itself, with the same functions,
// and compares files and exit codes. `make kpt-compare` builds the programs and runs it; without
// kpt, as in `make kpt-compare-short`, it compares with what kpt of 2026-08 wrote. test/README.md says where each
// expected tree comes from. None comes from fnctl.
package kptcompare_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	// Where the programs are, as make sets it.
	programs = os.Getenv("KPTCOMPARE_PROGRAMS")
	withKpt  = os.Getenv("KPTCOMPARE_KPT") != ""
)

// The word "fn" of the scripts.
const (
	kptPrelude   = "fn() { kpt fn \"$@\"; }\n"
	fnctlPrelude = "fn() { fnctl \"$@\"; }\n"
)

// run runs a script in a new directory with the given files, and returns the files after it, and
// whether it failed.
func run(t *testing.T, prelude, script string, before files) (files, bool) {
	t.Helper()
	dir := t.TempDir()
	before.write(t, dir)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", prelude+script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "FNCTL_ADDRESS="+gateway, "LC_ALL=C", "GOGC=off", "GOMAXPROCS=1",
		"FUNCTIONS="+filepath.Join(programs, "functions"), "PATH="+programs+":"+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", strings.TrimSpace(script), output)
	return readFiles(t, dir), err != nil
}

func TestCases(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(strings.TrimSuffix(filepath.Base(s.file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			compare(t, s)
		})
	}
}

func compare(t *testing.T, s *scenario) {
	t.Helper()
	got, failed := run(t, fnctlPrelude, s.script, s.before)
	if diff := difference(t, s.after(), got); diff != "" || failed != s.fails {
		t.Errorf("fnctl: fails %t, want %t\n%s", failed, s.fails, diff)
	}
	if withKpt {
		compareKpt(t, s)
	}
}

// compareKpt compares the expected tree with kpt v1.0.0-beta.48.
func compareKpt(t *testing.T, s *scenario) {
	t.Helper()
	got, failed := run(t, kptPrelude, s.script, s.before)
	diff := difference(t, s.after().withoutStatus(t), got.withoutStatus(t))
	switch as := diff == "" && failed == s.fails; {
	case s.kind == same && !as:
		t.Errorf("kpt: fails %t, want %t; the kind of this case must be %q\n%s", failed, s.fails, today, diff)
	case s.kind == differs && as:
		t.Errorf("kpt does the same: the kind of this case must be %q, or %q", same, differsSince)
	case s.kind == differsSince && !as:
		t.Errorf("kpt does something else: the kind of this case must be %q", differs)
	}
}

// TestGenerated renders packages that are made by chance.
func TestGenerated(t *testing.T) {
	if !withKpt {
		return // what kpt does with them is not in a file
	}
	for seed := range uint64(generated) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			tree := newPackage(seed)
			want, kptFails := run(t, kptPrelude, "fn render p", tree)
			got, fails := run(t, fnctlPrelude, "fn render p --no-status", tree)
			if diff := difference(t, want, got); diff != "" || fails != kptFails {
				t.Errorf("seed %d: fnctl fails %t, kpt %t\n%s\nof\n%s", seed, fails, kptFails, diff, archive("", tree))
			}
		})
	}
}
