// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/krm-function-runner/function-runner/test/internal/packagelist"
)

// Limits for the cost of confinement, which restricts functions' access to the machine. spareLimit applies to processes
// that start before their evaluation. newLimit applies to processes that start during their evaluation.
const (
	spareLimit = 1.05                   // maximum ratio to the unconfined median
	newLimit   = 500 * time.Microsecond // maximum difference from the unconfined median
)

const confinementHeader = "function process  samples   p50 off    p50 on    on/off     on-off  limit"

// nodeFunction is a JavaScript function that only returns its input. It shows the cost of a Node.js process.
const nodeFunction = "#!/usr/bin/env node\nprocess.stdout.write(require('fs').readFileSync(0))\n"

// subject is a function that is evaluated with and without restrictions of its access, to measure their cost.
type subject struct {
	name, image string
	// pause is the time between evaluations. During the pause, the server can start the next process in advance.
	pause time.Duration
}

// mode is a way to start function processes: in advance, or at the beginning of each evaluation. Processes that do not
// start in advance need only a short pause between evaluations. Their measurement therefore contains more evaluations.
type mode struct {
	name  string
	env   []string
	pause func(subject) time.Duration
}

var modes = []mode{
	{"spare", nil, func(s subject) time.Duration { return s.pause }},
	{"new", []string{"FNR_EXEC_PREFORK=0"}, func(subject) time.Duration { return 5 * time.Millisecond }},
}

// confinement measures the cost of restricting functions' access to the machine. The input is a list of one resource.
func (b *bench) confinement(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "overhead-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	subjects, err := b.subjects(dir)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(b.out, confinementHeader); err != nil {
		return err
	}
	for _, s := range subjects {
		for _, m := range modes {
			if err := b.compareConfined(ctx, dir, s, m); err != nil {
				return fmt.Errorf("%s function, %s process: %w", s.name, m.name, err)
			}
		}
	}
	return nil
}

// subjects writes the functions to measure and their configuration to dir. It omits the JavaScript function if Node.js
// is not installed.
func (b *bench) subjects(dir string) ([]subject, error) {
	subjects := []subject{{"go", b.image, 40 * time.Millisecond}}
	config := "functions:\n" + configEntry(b.image, b.function)
	if _, err := exec.LookPath("node"); err == nil {
		const image = "example.com/node:v1"
		subjects = append(subjects, subject{"node", image, 150 * time.Millisecond})
		config += configEntry(image, "node-function")
	}
	binary, err := os.ReadFile(filepath.Join(b.functions, b.function))
	return subjects, errors.Join(err,
		os.WriteFile(filepath.Join(dir, b.function), binary, 0o700),
		os.WriteFile(filepath.Join(dir, "node-function"), []byte(nodeFunction), 0o700),
		os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600))
}

func configEntry(image, function string) string {
	return fmt.Sprintf("- function: %s\n  images: [%q]\n", function, image)
}

// compareConfined compares a gateway that restricts functions with a gateway that does not restrict them, and prints
// the medians.
func (b *bench) compareConfined(ctx context.Context, dir string, s subject, m mode) error {
	var ways []way
	for _, level := range []string{"off", "require"} {
		gateway := *b
		gateway.functions = dir
		server, err := gateway.startGateway(ctx, append([]string{"FNR_CONFINE=" + level}, m.env...)...)
		if err != nil {
			return err
		}
		defer server.stop()
		ways = append(ways, way{"confinement " + level, remoteWay(server.conn, s.image), server.cmd.Process.Pid, ""})
	}
	list := packagelist.New(1)
	if err := sameOutput(ctx, ways, list); err != nil {
		return err
	}
	took, err := b.inTurns(ctx, ways, list, m.pause(s))
	if err != nil {
		return err
	}
	return reportConfinement(b.out, s, m, took[0], took[1])
}

func reportConfinement(out io.Writer, s subject, m mode, off, on times) error {
	without, with := off.quantile(.5), on.quantile(.5)
	ratio, cost := float64(with)/float64(without), with-without
	limit, held := fmt.Sprint("on/off ", spareLimit), ratio <= spareLimit
	if m.name == "new" {
		limit, held = fmt.Sprint("on-off ", newLimit), cost <= newLimit
	}
	verdict := map[bool]string{true: "held", false: "exceeded"}[held]
	const micros = time.Microsecond
	_, err := fmt.Fprintf(out, "%-8s %-7s %8d %9s %9s %9.3f %10s  %s: %s\n", s.name, m.name, len(on.evaluations),
		without.Round(micros), with.Round(micros), ratio, cost.Round(micros), limit, verdict)
	return err
}
