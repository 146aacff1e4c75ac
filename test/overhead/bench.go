// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench is a whole measurement.
type bench struct {
	bin, functions       string
	image, function      string
	items, callers, ways string // lists with commas
	budget, block        time.Duration
	out                  io.Writer
	// logLevel and stderr are those of the gateways.
	logLevel string
	stderr   io.Writer
}

// way is one way to evaluate.
type way struct {
	name     string
	evaluate func(ctx context.Context, list []byte) ([]byte, error)
	pid      int // of its server; zero if there is none
}

// tables measures what is in a list with commas.
func (b *bench) tables(ctx context.Context, list string) error {
	measure := map[string]func(context.Context) error{
		"overhead": b.run, "confinement": b.confinement, "telemetry": b.telemetry,
	}
	for name := range strings.SplitSeq(list, ",") {
		if measure[name] == nil {
			return fmt.Errorf("%q is not one of the tables", name)
		}
		if err := measure[name](ctx); err != nil {
			return err
		}
	}
	return nil
}

// run measures all sizes and numbers of callers.
func (b *bench) run(ctx context.Context) error {
	items, err := numbers(b.items)
	if err != nil {
		return fmt.Errorf("numbers of items: %w", err)
	}
	callers, err := numbers(b.callers)
	if err != nil {
		return fmt.Errorf("numbers of callers: %w", err)
	}
	ways, stop, err := b.open(ctx)
	defer stop()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(b.out, header); err != nil {
		return err
	}
	for _, n := range items {
		list := resourceList(n)
		if err := sameOutput(ctx, ways, list); err != nil {
			return err
		}
		for _, c := range callers {
			times, err := b.measure(ctx, ways, list, c)
			if err != nil {
				return err
			}
			if err := report(b.out, n, c, ways, times); err != nil {
				return err
			}
		}
	}
	return nil
}

// numbers returns the positive numbers of a comma-separated list.
func numbers(list string) ([]int, error) {
	var all []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", field)
		}
		all = append(all, n)
	}
	return all, nil
}

// open returns the ways to measure. The caller must call stop, even after an error.
func (b *bench) open(ctx context.Context) (ways []way, stop func(), err error) {
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
		"wrapper":     func() (*server, error) { return b.startWrapper(ctx, binary) },
		"gateway-off": func() (*server, error) { return b.startGateway(ctx, "FNR_CONFINE=off") },
		"gateway-np":  func() (*server, error) { return b.startGateway(ctx, "FNR_GATEWAY_EXEC_PREFORK=0") },
		"wrapper-np":  func() (*server, error) { return b.startWrapper(ctx, binary, "FNR_PREFORK=0") },
	}
	for _, name := range strings.Split(b.ways, ",") {
		switch {
		case name == "bare":
			ways = append(ways, way{name, bare(binary), 0})
		case start[name] == nil:
			return nil, stop, fmt.Errorf("%q is not one of the ways to measure", name)
		default:
			s, err := start[name]()
			if err != nil {
				return nil, stop, err
			}
			servers = append(servers, s)
			ways = append(ways, way{name, remote(s.conn, b.image), s.cmd.Process.Pid})
		}
	}
	return ways, stop, nil
}

// sameOutput fails if the ways return different output.
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
