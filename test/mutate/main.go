// SPDX-License-Identifier: Apache-2.0

// Command mutate checks that the tests of the core packages are thorough. It makes small changes (mutations) to the
// packages, one after another, and runs the tests after each change.
//
// Tests must notice all mutations in mutations.go. Then the tool gremlins generates further mutations. The command
// prints the generated mutations that no test notices. It does not fail because of them: some mutations make no
// difference. A developer must judge them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/krm-function-runner/function-runner/test/internal/sandbox"
)

type options struct {
	root, gremlins string
	budget         time.Duration
	only           *regexp.Regexp
	inner          bool
}

func main() { sandbox.Main("mutate", run) }

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "..", "directory of the repository")
	flags.StringVar(&o.gremlins, "gremlins", "", "path of gremlins; empty for the changes with a name alone")
	flags.DurationVar(&o.budget, "budget", 5*time.Minute, "longest time for one package")
	flags.BoolVar(&o.inner, "inner", false, "for this program itself: it is in its sandbox")
	only := flags.String("only", "", "regular expression of the packages, or names, to do")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, err
	}
	o.root, err = filepath.Abs(o.root)
	return o, err
}

// run executes the tests with each mutation, in a sandbox if possible. Mutated code may send signals to other
// processes, and the sandbox protects the processes of the machine.
func run(ctx context.Context, args []string) (code int, err error) {
	o, err := parse(args)
	if err != nil {
		return 2, err
	}
	if o.inner {
		return sandbox.Inside(func() (int, error) { return mutateAll(ctx, o, packages) })
	}
	if sandbox.Possible() {
		return sandbox.Run(ctx, append(args, "-inner")...)
	}
	fmt.Println("left out: packages that kill processes, which need a sandbox, and that needs root")
	return mutateAll(ctx, o, withoutKilling(packages))
}

// mutateAll tests all mutations. The exit code is 1 if no test notices a mutation in mutations.go, or if such a
// mutation is invalid.
func mutateAll(ctx context.Context, o options, core []target) (code int, err error) {
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	lived, err := testNamed(ctx, o, core, work)
	if err != nil {
		return 1, err
	}
	if o.gremlins != "" {
		if err := unleashAll(ctx, o, core, work); err != nil {
			return 1, err
		}
	}
	if lived > 0 {
		return 1, fmt.Errorf("%d mutations with a name were not noticed: their tests are missing", lived)
	}
	return 0, ctx.Err()
}

// testNamed tests the mutations in mutations.go, and returns the number of unnoticed mutations.
func testNamed(ctx context.Context, o options, core []target, work string) (lived int, err error) {
	for _, m := range named {
		if (!o.only.MatchString(m.Name) && !o.only.MatchString(m.Package)) || !containsPath(core, m.Package) {
			continue
		}
		verdict, err := m.runTests(ctx, o, work)
		if err != nil {
			return lived, fmt.Errorf("%s: %w", m.Name, err)
		}
		fmt.Printf("%-9s %s\n", verdict, m.Name)
		if verdict != killed {
			lived++
		}
	}
	return lived, nil
}

// unleashAll runs the mutation tester gremlins on each package.
func unleashAll(ctx context.Context, o options, core []target, work string) error {
	fmt.Printf("\n%-45s %6s %6s %9s %11s\n", "PACKAGE", "KILLED", "LIVED", "TIMED OUT", "NOT COVERED")
	for _, p := range core {
		if !o.only.MatchString(p.path()) {
			continue
		}
		if err := p.runGremlins(ctx, o, work); err != nil {
			return fmt.Errorf("%s: %w", p.path(), err)
		}
	}
	return nil
}
