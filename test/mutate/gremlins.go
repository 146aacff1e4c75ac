// SPDX-License-Identifier: Apache-2.0

package main

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
	"syscall"
	"time"
)

// mutationLine matches the result, kind and position of a mutation in the output of the tool gremlins.
var mutationLine = regexp.MustCompile(`(?m)^\s*(KILLED|LIVED|TIMED OUT|NOT COVERED) (\w+) at (\S+?):(\d+):\d+`)

// runGremlins runs the mutation tester gremlins on a package, and prints the results. It parses gremlins' output
// instead of its report, because gremlins writes no report if it is interrupted by the timeout.
func (t target) runGremlins(ctx context.Context, o options, work string) error {
	flag, err := t.writeModfile(ctx, o, work)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.budget)
	defer cancel()
	cmd := exec.CommandContext(limited, o.gremlins, "unleash", "--workers=2", "--timeout-coefficient=5", "./"+t.dir)
	cmd.Dir = filepath.Join(o.root, t.module)
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" "+flag, "TMPDIR="+work)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	late := limited.Err() != nil
	if err != nil && !late {
		return errors.Join(fmt.Errorf("gremlins: %w", err), errors.New(string(output)))
	}
	return t.printResults(os.Stdout, output, late, o.budget)
}

// printResults prints the number of mutations with each result, and the positions of mutations that no test noticed.
func (t target) printResults(w io.Writer, output []byte, late bool, budget time.Duration) error {
	count := map[string]int{}
	var where bytes.Buffer
	for _, m := range mutationLine.FindAllSubmatch(output, -1) {
		status := string(m[1])
		count[status]++
		if status == "LIVED" {
			fmt.Fprintf(&where, "    lived: %s:%s %s\n", filepath.Join(t.path(), filepath.Base(string(m[3]))), m[4], m[2])
		}
	}
	note := ""
	if late {
		note = fmt.Sprintf("  (as far as %v went: -budget)", budget)
	}
	_, err := fmt.Fprintf(w, "%-45s %6d %6d %9d %11d%s\n%s", t.path(),
		count["KILLED"], count["LIVED"], count["TIMED OUT"], count["NOT COVERED"], note, &where)
	return err
}

// writeModfile writes a go.mod for gremlins, which runs tests in a copy of the module. This go.mod contains an absolute
// path for the module libs, because a relative path is wrong in the copy. The result is the go flag that selects it.
func (t target) writeModfile(ctx context.Context, o options, work string) (flag string, err error) {
	module := filepath.Join(o.root, t.module)
	name := filepath.Join(work, filepath.Base(t.module))
	for from, to := range map[string]string{"go.mod": name + ".mod", "go.sum": name + ".sum"} {
		content, err := os.ReadFile(filepath.Join(module, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			return "", err
		}
	}
	const libs = "github.com/krm-function-runner/function-runner/libs"
	if t.module == "libs" {
		return "-modfile=" + name + ".mod", nil
	}
	out, err := goCommand(ctx, module, "mod", "edit", "-replace="+libs+"="+filepath.Join(o.root, "libs"), name+".mod")
	if err != nil {
		return "", fmt.Errorf("edit go.mod: %w\n%s", err, out)
	}
	return "-modfile=" + name + ".mod", nil
}
