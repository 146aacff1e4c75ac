// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// firstEvaluations measures first evaluations in new sandboxes. A run of `fnctl --local` begins with such evaluations.
func (b *bench) firstEvaluations(ctx context.Context) error {
	if _, err := exec.LookPath("bwrap"); err != nil {
		_, err = fmt.Fprintln(b.out, "skipped: first evaluations: bubblewrap is not installed")
		return err
	}
	err := b.goBench(
		ctx, "services/function-runner", "./localrunner", "First", "-tags", "bubblewrap", "-benchtime", "300x")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(b.out, "\nThe goal is at most the bare process and 1.2 launches of bubblewrap.")
	return err
}

// cacheHits measures evaluations that the gateway answers from its result cache.
func (b *bench) cacheHits(ctx context.Context) error {
	if err := b.goBench(ctx, "services/gateway", "./gateway", "Hit"); err != nil {
		return err
	}
	_, err := fmt.Fprintln(b.out, "\nThe goal is a p50 under 1 ms.")
	return err
}

// memory measures the resident memory of a gateway while it serves large messages.
func (b *bench) memory(ctx context.Context) error {
	if err := b.goBench(ctx, "services/gateway", ".", "MemoryInFlight"); err != nil {
		return err
	}
	_, err := fmt.Fprintln(b.out, "\nThe goal is at most 2.2 times the bytes in flight.")
	return err
}

// roundTrips measures evaluations with large messages over connections with artificial latency.
func (b *bench) roundTrips(ctx context.Context) error {
	return b.goBench(ctx, "libs", "./evalserve", "RoundTrip")
}

// goBench runs Go benchmarks in a module and prints their results as a table.
func (b *bench) goBench(ctx context.Context, module, pkg, name string, flags ...string) error {
	args := append([]string{"test", "-vet=off", "-run", "^$", "-bench", name}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = filepath.Join("..", module)
	cmd.Stderr = b.stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go %s in %s: %w: %s", strings.Join(args, " "), module, err, out)
	}
	table := benchTable(string(out))
	if table == "" {
		return errors.New("no benchmark is named " + name)
	}
	_, err = fmt.Fprint(b.out, table)
	return err
}

// benchTable converts the output of Go benchmarks to a Markdown table. The table is empty if there are no results.
func benchTable(out string) string {
	var rows strings.Builder
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 { // suffix with the number of processors
			name = name[:i]
		}
		var figures []string
		for figure := range slices.Chunk(fields[2:], 2) {
			figures = append(figures, strings.Join(figure, " "))
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", name, strings.Join(figures, ", "))
	}
	if rows.Len() == 0 {
		return ""
	}
	return "| benchmark | figures |\n|---|---|\n" + rows.String()
}
