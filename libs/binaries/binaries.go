// SPDX-License-Identifier: Apache-2.0

// Package binaries distributes the list of images that the gateway runs as local programs instead of in pods. The
// pod-manager reads the list from FunctionConfig objects and sends it to gateways, in the same process or over RPC.
package binaries

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Binary is a local program that the gateway runs for certain images instead of starting pods.
type Binary struct {
	// Config is the name of the FunctionConfig object that declares the binary.
	Config string
	// Path is the path of the program, absolute or relative to the gateway's directory of function binaries.
	Path string
	// Images contains the canonical names of the images that the program replaces.
	Images []string
	// Prefork is the number of processes to start before evaluations need them. Nil means the gateway's default.
	Prefork *int
}

// equalBinaries reports whether two binaries have equal fields, including the numbers that Prefork points to.
func equalBinaries(a, b Binary) bool {
	prefork := a.Prefork == b.Prefork || (a.Prefork != nil && b.Prefork != nil && *a.Prefork == *b.Prefork)
	return prefork && a.Config == b.Config && a.Path == b.Path && slices.Equal(a.Images, b.Images)
}

// Problems maps the name of a FunctionConfig to the reason why a gateway cannot use its binary. Nil means that no
// gateway has reported yet.
type Problems map[string]string

// Source provides the list of images that run as local binaries.
type Source interface {
	// Watch passes the complete list of binaries to the given callback as soon as the list is known, and again after each
	// change. Calls of the callback do not overlap. The callback must not change the list, because other callers get the
	// same slice. Watch returns when ctx is done or the connection to the source is lost.
	//
	// The callback returns the problems of the binaries, which the status of each FunctionConfig shows until the callback
	// returns different problems or Watch returns. If the callback returns nil, the status does not change.
	Watch(ctx context.Context, use func([]Binary) Problems) error
}

// Board is a Source for gateways that run in the same process as the pod-manager. Put sends a list of binaries to
// all running calls of Watch. Create a Board with [NewBoard].
type Board struct {
	report    func(Problems)
	reporting sync.Mutex
	reports   map[*Problems]Problems // latest problems of each watch

	mu      sync.Mutex
	known   bool
	list    []Binary
	changed chan struct{} // closed by the next Put
}

// NewBoard returns a board without a list of binaries. Calls of Watch wait for the first call of Put. When the problems
// of a gateway change, the board passes the problems of all gateways to the callback report.
func NewBoard(report func(Problems)) *Board {
	return &Board{report: report, reports: map[*Problems]Problems{}, changed: make(chan struct{})}
}

// Put sends a new list of binaries to all running calls of Watch. Callers must not change the list afterwards.
func (b *Board) Put(list []Binary) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known && slices.EqualFunc(b.list, list, equalBinaries) {
		return
	}
	b.known = true
	b.list = list
	close(b.changed)
	b.changed = make(chan struct{})
}

// latestList returns the latest list of binaries, and a channel that is closed when the list changes. The result known
// is false before the first call of Put.
func (b *Board) latestList() (list []Binary, known bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list, b.known, b.changed
}

// Watch implements Source.
func (b *Board) Watch(ctx context.Context, use func([]Binary) Problems) error {
	var own Problems
	defer func() { b.reportProblems(&own, nil) }()
	for {
		list, known, changed := b.latestList()
		if known {
			if problems := use(list); problems != nil {
				b.reportProblems(&own, problems)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reportProblems replaces the problems of one gateway and then reports the problems of all gateways. The pointer watch
// identifies the gateway, as its key in b.reports.
func (b *Board) reportProblems(watch *Problems, problems Problems) {
	b.reporting.Lock()
	defer b.reporting.Unlock()
	if problems == nil && b.reports[watch] == nil {
		return
	}
	b.reports[watch] = problems
	if problems == nil {
		delete(b.reports, watch)
	}
	var all Problems
	for _, some := range b.reports {
		if all == nil {
			all = Problems{}
		}
		maps.Copy(all, some)
	}
	b.report(all)
}

const (
	// minPause and maxPause are the minimum and the maximum wait before Follow reconnects to a source. The first wait
	// is short because gateways often start before pod-managers, and evaluations need the list.
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// Follow passes each new list of binaries to the given callback until ctx is done. If the connection to the source is
// lost, Follow logs this once and reconnects. Until then, the last list remains in use.
func Follow(ctx context.Context, source Source, log *slog.Logger, use func([]Binary) Problems) {
	backoff := retry.Backoff{First: minPause, Max: maxPause, Jitter: 1}
	lost := false
	for {
		err := source.Watch(ctx, func(list []Binary) Problems {
			if lost {
				log.InfoContext(ctx, "FunctionConfigs for local binaries received again")
			}
			lost = false
			backoff.Reset()
			return use(list)
		})
		if ctx.Err() != nil {
			return
		}
		if !lost {
			lost = true
			log.WarnContext(ctx, "FunctionConfigs for local binaries unavailable, using the last ones", "error", err)
		}
		if !backoff.Wait(ctx) {
			return
		}
	}
}
