// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// TestUsualPrograms runs what functions are written in, as they are found in images.
func TestUsualPrograms(t *testing.T) {
	scripts := map[string]string{
		"shell": strings.Join([]string{
			"#!/bin/sh",
			"set -e",
			"f=$(mktemp)",
			"cat /dev/stdin > $f",
			"sed s/a/b/ < $f | sort > $f.2 2>/dev/null",
			"mkdir $TMPDIR/d && mv $f $TMPDIR/d/x && chmod 600 $TMPDIR/d/x && cat $f.2 > /dev/stdout",
			"rm -r $f.2 $TMPDIR/d",
			"(kill -0 $$)",
			"",
		}, "\n"),
	}
	if _, err := exec.LookPath("node"); err == nil {
		scripts["node"] = strings.Join([]string{
			"#!/usr/bin/env node",
			"const fs = require('fs'), os = require('os'), cp = require('child_process')",
			"const list = fs.readFileSync('/dev/stdin', 'utf8')",
			"fs.mkdtempSync(os.tmpdir() + '/x')",
			"process.stdout.write(cp.execFileSync('cat', {input: list.replace('a', 'b')}))",
			"",
		}, "\n")
	}
	if python, err := exec.LookPath("/usr/bin/python3"); err == nil {
		scripts["python"] = strings.Join([]string{
			"#!" + python,
			"import sys, tempfile, subprocess, json",
			"with tempfile.NamedTemporaryFile() as f:",
			"  f.write(sys.stdin.buffer.read()); f.flush()",
			"  sys.stdout.write(subprocess.check_output(['sed', 's/a/b/', f.name], text=True))",
			"",
		}, "\n")
	}
	dir := t.TempDir()
	for _, readAll := range []bool{false, true} {
		cfg := config(t)
		cfg.ReadAll = readAll
		runner, stop := start(t, cfg)
		for name, script := range scripts {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := fnproc.Command{
				Path:      path,
				Dir:       "/",
				Env:       []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/"},
				MaxOutput: 1 << 20,
				MaxLog:    1 << 20,
			}
			got, err := runner.Run(t.Context(), cmd, []byte("kind: a\n"))
			if err != nil || strings.TrimSpace(string(got.Output)) != "kind: b" {
				t.Errorf("%s, reading all %v: %v, %s, output %q, log %q", name, readAll, err, got.Status, got.Output, got.Log)
			}
		}
		stop()
	}
}
