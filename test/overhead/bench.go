// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench contains the command-line options for a run of the measurements.
type bench struct {
	bin, functions       string
	image, function      string
	items, callers, ways string // comma-separated lists
	document             string // file for the results, optional
	budget, block        time.Duration
	// examples is the directory of the command examples/functions. launcher is the value of FNR_SANDBOX, the program that
	// starts sandboxes. podman is the command line for running an image, without the image's name.
	examples, launcher, podman string
	// kpt is the path of the program kpt, as built by make kpt-compare.
	kpt string
	out io.Writer
	// logLevel is the log level of the gateways.
	logLevel string
	// stderr receives the logs of the gateways and of all other programs.
	stderr io.Writer
}

// way is a means of evaluating a function, such as a gateway, or a new process for each evaluation.
type way struct {
	name     string
	evaluate func(ctx context.Context, list []byte) ([]byte, error)
	pid      int    // process ID of the server, or 0 without a server
	target   string // value of loadgen's flag --target
}

// measurements returns all measurements. The keys are the names of the tables that they print.
func (b *bench) measurements() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"overhead": b.run, "sandboxes": b.sandboxes, "confinement": b.confinement, "telemetry": b.telemetry,
		"local": b.localRuns, "first": b.firstEvaluations, "throughput": b.throughput, "hits": b.cacheHits,
		"mutualtls": b.mutualTLS, "memory": b.memory, "round-trips": b.roundTrips,
	}
}

// measureTables runs the measurements in a comma-separated list of names. After a failed measurement, it continues with
// the next name.
func (b *bench) measureTables(ctx context.Context, list string) error {
	measure, names := b.measurements(), strings.Split(list, ",")
	for _, name := range names {
		if measure[name] == nil {
			return fmt.Errorf("%q is not one of the tables", name)
		}
	}
	var failed []error
	for _, name := range names {
		if err := b.keepFigures(ctx, name, measure[name]); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// run compares the programs that the command line selects, for all sizes of resource lists and all numbers of callers.
func (b *bench) run(ctx context.Context) error {
	ways, stop, err := b.openWays(ctx)
	defer stop()
	if err != nil {
		return err
	}
	args := []string{"--items", b.items, "--callers", b.callers}
	for _, w := range ways {
		args = append(args, "--target", w.name+"="+w.target)
	}
	figures, err := b.loadgen(ctx, args...)
	if err == nil {
		_, err = fmt.Fprint(b.out, figures)
	}
	return err
}

// loadgen runs the command test/loadgen with the measured function, and returns the table that loadgen prints.
func (b *bench) loadgen(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"--image", b.image, "--duration", b.budget.String(), "--turn", b.block.String()}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "loadgen"), args...)
	cmd.Stderr = b.stderr
	figures, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run loadgen: %w", err)
	}
	return string(figures), nil
}

// openWays starts the servers that the command line selects. The caller must call stop, even after an error.
func (b *bench) openWays(ctx context.Context) (ways []way, stop func(), err error) {
	var servers []*server
	stop = func() {
		for _, s := range servers {
			s.stop()
		}
	}
	binary := filepath.Join(b.functions, b.function)
	start := map[string]func() (*server, error){
		"hop":         func() (*server, error) { return b.startHop(ctx) },
		"gateway":     func() (*server, error) { return b.startGateway(ctx) },
		"wrapper":     func() (*server, error) { return b.startWrapper(ctx, binary, nil) },
		"gateway-off": func() (*server, error) { return b.startGateway(ctx, "FNR_CONFINE=off") },
		"gateway-np":  func() (*server, error) { return b.startGateway(ctx, "FNR_EXEC_PREFORK=0") },
		"wrapper-np":  func() (*server, error) { return b.startWrapper(ctx, binary, nil, "--prefork=0") },
	}
	for _, name := range strings.Split(b.ways, ",") {
		switch {
		case name == "bare":
			ways = append(ways, way{name, bareProcess(binary), 0, "exec:" + binary})
		case start[name] == nil:
			return nil, stop, fmt.Errorf("%q is not one of the ways to measure", name)
		default:
			s, err := start[name]()
			if err != nil {
				return nil, stop, err
			}
			servers = append(servers, s)
			ways = append(ways, way{name, remoteWay(s.conn, b.image), s.cmd.Process.Pid, s.conn.Target()})
		}
	}
	return ways, stop, nil
}

// sameOutput returns an error if the programs return different outputs, because their times would not be comparable.
func sameOutput(ctx context.Context, ways []way, list []byte) error {
	want, err := ways[0].evaluate(ctx, list)
	if err != nil {
		return fmt.Errorf("%s: %w", ways[0].name, err)
	}
	for _, w := range ways[1:] {
		got, err := w.evaluate(ctx, list)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s returns %d bytes that differ from the bare process's %d", w.name, len(got), len(want))
		}
	}
	return nil
}
