// SPDX-License-Identifier: Apache-2.0

// Package golden is the command fnctl test, which compares the outcome of functions with expected files. Read golden.go
// first, then case.go, which runs one test.
package golden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

const testHelp = `Test runs functions on packages and compares the files with what is expected. A test is a
package with a directory .expected, as in kpt's catalog of functions: config.yaml says what runs (testType eval or
render, image, args, fnConfig, exitCode, stdErr, skip, nonIdempotent), diff.patch has the changes and
results.yaml the results. A test without diff.patch expects no changes. Files with equivalent resources are
equal, whatever their style. The package itself is not changed.`

const testExamples = `  # Run all tests below a directory
  fnctl test ./examples --local
  # Test the program that you are writing, in place of its image
  fnctl test ./examples --exec ./my-function
  # Make what comes of them the expectation, and look at it
  fnctl test ./examples --update && git diff ./examples`

const failedTest = "FAIL"

type testCommand struct {
	env       command.Environment
	fnctl     run
	gateway   backend.Flags
	prefix    string
	allowExec bool
	update    bool
}

// run is a function that runs a command of fnctl with the given arguments, and returns its exit code.
type run = func(ctx context.Context, env command.Environment, args []string) int

// NewCommand returns the command fnctl test. Tests run other fnctl commands in this process by calling fnctl.
func NewCommand(env command.Environment, fnctl run) *cobra.Command {
	c := &testCommand{env: env, fnctl: fnctl}
	cmd := &cobra.Command{
		Use:     "test [DIR]",
		Short:   "Run the tests of functions",
		Long:    testHelp,
		Example: testExamples,
		Args:    command.OneTarget("DIR, a directory with tests"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.gateway.Check(cmd.Flags()); err != nil {
				return command.UsageError(cmd, err)
			}
			passed := passedFlags(cmd.Flags(), "allow-exec", "update", "exec")
			return c.run(cmd.Context(), command.TargetArgument(cmd, args), passed)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.allowExec, "allow-exec", false, "permit functions that are programs of this machine")
	flags.BoolVar(&c.update, "update", false, "write what comes of the tests to their directories .expected")
	flags.StringVar(&c.env.ImageProgram, "exec", "", "run this program of your machine in place of all images")
	c.gateway.Register(flags, env)
	command.RegisterImagePrefix(flags, env, &c.prefix)
	return cmd
}

// passedFlags returns the flags that the user set, except the given flags, to pass them to another command.
func passedFlags(flags *pflag.FlagSet, without ...string) []string {
	var set []string
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			set = append(set, "--"+f.Name+"="+f.Value.String())
		}
	})
	return set
}

func (c *testCommand) run(ctx context.Context, dir string, flags []string) error {
	dirs, err := findTests(dir)
	if err != nil {
		return err
	}
	out, counts := c.env.OutPrinter(), map[string]int{}
	for _, test := range dirs {
		start := time.Now()
		outcome, note, err := c.runOne(ctx, test, flags)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if note == "" {
			note = fmt.Sprintf("%.2fs", time.Since(start).Seconds())
		}
		counts[outcome]++
		out.Outcome(outcome, outcome != failedTest, ui.OneLine(test), note)
		if files, ok := errors.AsType[*unexpectedFiles](err); ok {
			out.Line("%v", err)
			out.Diff(files.changes)
		} else if err != nil {
			out.Line("%s", ui.Printable(err.Error()))
		}
	}
	n := counts[failedTest]
	skipped := counts["skip"]
	out.Line("%s: %d passed, %d failed, %d skipped", ui.Count(len(dirs), "test"), len(dirs)-n-skipped, n, skipped)
	if n > 0 {
		return command.WithCode(command.ExitFunction, errors.New(ui.Count(n, "test")+" failed"))
	}
	return nil
}

func (c *testCommand) runOne(ctx context.Context, dir string, flags []string) (outcome, note string, err error) {
	test, err := readTestCase(dir)
	if err != nil {
		return failedTest, "", err
	}
	if reason := test.skipReason(); reason != "" {
		return "skip", reason, nil
	}
	switch err := test.run(ctx, c, flags); {
	case err != nil:
		return failedTest, "", err
	case c.update:
		return "updated", "", nil
	}
	return "ok", "", nil
}

// findTests returns the directories below dir that contain a test, sorted by path.
func findTests(dir string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == expectedDir:
			dirs = append(dirs, filepath.Dir(name))
			return fs.SkipDir
		case entry.IsDir() && name != dir && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && len(dirs) == 0 {
		err = fmt.Errorf("%s has no tests: a test is a package with a directory %s", dir, expectedDir)
	}
	return dirs, err
}
