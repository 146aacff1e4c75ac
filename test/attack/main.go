// SPDX-License-Identifier: Apache-2.0

// Command attack attacks each program of this repository, like hostile or careless callers, functions, pods and
// registries. It fails if a program exits, retains memory, delays well-behaved callers or lets a function escape from
// its restrictions. As root, it runs in its own namespaces, and limits the programs' memory. Without root, it reports
// that it runs without namespaces and limits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/krm-function-runner/function-runner/test/attack/internal/attacks"
	"github.com/krm-function-runner/function-runner/test/attack/internal/caller"
	"github.com/krm-function-runner/function-runner/test/attack/internal/row"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/internal/sandbox"
)

func main() { sandbox.Main("attack", runRole) }

// runRole runs the command attack or one of its helper processes. The first argument selects the helper: Stage starts a
// program in the sandbox, and Role runs well-behaved callers.
func runRole(ctx context.Context, args []string) (code int, err error) {
	switch {
	case len(args) > 0 && args[0] == sandbox.Stage:
		return 1, sandbox.Become(args[1:])
	case len(args) == 3 && args[0] == caller.Role:
		return 0, caller.Run(ctx, args[1], args[2], os.Stdout)
	default:
		return run(ctx, args)
	}
}

// options are the command-line options. The program sets inner, dir and owner itself, for its copy in the sandbox.
type options struct {
	bin, dir     string
	only         *regexp.Regexp
	brief, inner bool
	owner        int
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "../.build/attack", "directory with the programs")
	flags.BoolVar(&o.brief, "short", false, "the short form: fewer attacks, fewer programs, less time")
	only := flags.String("only", "", "regular expression of the rows to run, as \"attack, program\"")
	flags.BoolVar(&o.inner, "inner", false, "for this program itself: it is in its sandbox")
	flags.StringVar(&o.dir, "dir", "", "for this program itself: its directory")
	flags.IntVar(&o.owner, "owner", os.Getpid(), "for this program itself: what to name things after")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

// run creates the sandbox, runs the attacks in it, and removes the sandbox.
func run(ctx context.Context, args []string) (code int, err error) {
	o, err := parseOptions(args)
	if err != nil {
		return 2, err
	}
	if o.inner {
		return sandbox.Inside(func() (int, error) { return attackPrograms(ctx, o, true) })
	}
	if err := sandbox.SweepAll(); err != nil {
		return 1, err
	}
	if o.dir, err = sandbox.NewDirectory(o.owner); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, sandbox.Sweep(o.owner)) }()
	if !sandbox.Possible() {
		fmt.Println("left out: the memory limit and namespaces, which need root; memory is the resident set")
		return attackPrograms(ctx, o, false)
	}
	return sandbox.Run(ctx, append(args, "-inner", "-dir", o.dir, "-owner", strconv.Itoa(o.owner))...)
}

// attackPrograms runs the selected attacks and prints the results. The exit code is 1 if an attack succeeds.
func attackPrograms(ctx context.Context, o options, limited bool) (code int, err error) {
	if limited {
		if limited, err = canLimit(o.owner); err != nil {
			return 1, err
		}
	}
	s, err := system.New(o.dir, o.bin, o.owner, limited)
	if err != nil {
		return 1, err
	}
	if err := row.Header(os.Stdout); err != nil {
		return 1, err
	}
	failed, total, err := o.runRows(ctx, row.Config{System: s, Brief: o.brief})
	if err != nil {
		return 1, err
	}
	fmt.Printf("%d of %d rows failed\n", failed, total)
	if total == 0 {
		return 1, errors.New("no row was run: check -only")
	}
	return min(failed, 1), nil
}

// canLimit reports whether this machine supports control groups with a memory limit.
func canLimit(owner int) (bool, error) {
	probe, err := sandbox.NewGroup(owner, "probe", system.Limit)
	if err != nil {
		fmt.Println("left out: the memory limit:", err)
		return false, nil
	}
	return true, probe.Remove()
}

// runRows attacks each selected program with each selected attack, and prints a row for each pair. It returns the
// number of failed rows and of all rows.
func (o options) runRows(ctx context.Context, config row.Config) (failed, total int, err error) {
	for _, a := range attacks.All() {
		for _, program := range o.selectPrograms(a) {
			r, err := config.Run(ctx, a, program)
			if err != nil {
				return failed, total, fmt.Errorf("%s, %s: %w", a.Name, program, err)
			}
			if err := r.Write(os.Stdout); err != nil {
				return failed, total, err
			}
			total++
			if r.Err() != nil {
				failed++
			}
		}
	}
	return failed, total, nil
}

func (o options) selectPrograms(a attacks.Attack) []string {
	programs := slices.Clone(a.Programs)
	if o.brief {
		programs = slices.Clone(a.Short)
	}
	return slices.DeleteFunc(programs, func(program string) bool { return !o.only.MatchString(a.Name + ", " + program) })
}
