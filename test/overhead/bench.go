package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bench is a whole measurement.
type bench struct {
	bin, functions  string
	image, function string
	items, ways     string // lists with commas
	prefork         string // processes
	budget          int    // seconds
	out             io.Writer
}

// way is one way to evaluate.
type way struct {
	name     string
	evaluate func(ctx context.Context, list []byte) ([]byte, error)
}

// run measures all sizes and numbers of callers.
func (b *bench) run(ctx context.Context) error {
	binary := filepath.Join(b.functions, b.function)
	gateway, err := b.startGateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.stop()
	wrapper, err := b.startWrapper(ctx, binary)
	if err != nil {
		return err
	}
	defer wrapper.stop()
	all := map[string]func(context.Context, []byte) ([]byte, error){
		"bare":    bare(binary),
		"gateway": remote(gateway.conn, b.image),
		"wrapper": remote(wrapper.conn, b.image),
	}
	var ways []way
	for name := range strings.SplitSeq(b.ways, ",") {
		if all[name] == nil {
			return fmt.Errorf("%q is none of the ways to measure", name)
		}
		ways = append(ways, way{name, all[name]})
	}
	if _, err := fmt.Fprintln(b.out, header); err != nil {
		return err
	}
	for field := range strings.SplitSeq(b.items, ",") {
		items, err := strconv.Atoi(field)
		if err != nil {
			return fmt.Errorf("numbers of items: %w", err)
		}
		list := resourceList(items)
		if err := sameOutput(ctx, ways, list); err != nil {
			return err
		}
		for _, callers := range []int{1, 8} {
			times, err := b.measure(ctx, ways, list, callers)
			if err != nil {
				return err
			}
			if err := report(b.out, items, callers, ways, times); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameOutput fails if one way returns something else than the others.
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
		if string(got) != string(want) {
			return fmt.Errorf("%s returns %d bytes that differ from the bare process's %d", w.name, len(got), len(want))
		}
	}
	return nil
}

// measure returns the times of each way. Every caller goes through all ways in turn,
// in a new order each time, so that all of them meet the same machine.
func (b *bench) measure(ctx context.Context, ways []way, list []byte, callers int) (map[string][]time.Duration, error) {
	var mu sync.Mutex
	times := map[string][]time.Duration{}
	var failure error
	end := time.Now().Add(time.Duration(b.budget) * time.Second)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for round := 0; ctx.Err() == nil && (round < 3 || time.Now().Before(end)); round++ {
				for _, i := range rand.Perm(len(ways)) {
					start := time.Now()
					_, err := ways[i].evaluate(ctx, list)
					took := time.Since(start)
					mu.Lock()
					times[ways[i].name] = append(times[ways[i].name], took)
					if err != nil {
						failure = fmt.Errorf("%s: %w", ways[i].name, err)
					}
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	return times, failure
}
