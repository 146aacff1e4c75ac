// SPDX-License-Identifier: Apache-2.0

// Package binaries passes on which images run as local binaries: from the pod-manager, which
// reads FunctionConfig objects, to the gateway, in the same process or over RPC.
package binaries

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Binary is a program that runs images.
type Binary struct {
	// Config is the name of the FunctionConfig.
	Config string
	// Path is the program: absolute, or relative to the gateway's directory of functions.
	Path string
	// Images are canonical names.
	Images []string
	// Prefork is the number of spare processes. Nil means the gateway's default.
	Prefork *int
}

// equalBinaries reports whether two binaries are the same.
func equalBinaries(a, b Binary) bool {
	prefork := a.Prefork == b.Prefork || a.Prefork != nil && b.Prefork != nil && *a.Prefork == *b.Prefork
	return prefork && a.Config == b.Config && a.Path == b.Path && slices.Equal(a.Images, b.Images)
}

// Problems are the reasons for unusable binaries, by the name of their FunctionConfig. Nil means that no gateway has
// reported yet.
type Problems map[string]string

// Source provides the list of binaries.
type Source interface {
	// Watch calls use with all binaries as soon as the list is available, and again with all of them after each change,
	// until ctx is done or the source is lost. Lists are shared: use must not change them. Calls do not overlap. The
	// problems that use returns appear in the status of FunctionConfigs until the watch stops or use returns different
	// problems. Nil changes nothing.
	Watch(ctx context.Context, use func([]Binary) Problems) error
}

// Board is a Source that has the latest list put on it. Use [NewBoard].
type Board struct {
	report    func(Problems)
	reporting sync.Mutex
	reports   map[*Problems]Problems // the latest of each watch

	mu      sync.Mutex
	known   bool
	list    []Binary
	changed chan struct{} // closes with the next list
}

// NewBoard returns a board without a list. The problems of all present watches together go to report.
func NewBoard(report func(Problems)) *Board {
	return &Board{report: report, reports: map[*Problems]Problems{}, changed: make(chan struct{})}
}

// Put replaces the list. Callers must not change it afterwards.
func (b *Board) Put(list []Binary) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known && slices.EqualFunc(b.list, list, equalBinaries) {
		return
	}
	b.known, b.list = true, list
	close(b.changed)
	b.changed = make(chan struct{})
}

// latestList returns the list, false before the first Put, and a channel that closes at the next Put.
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

// reportProblems replaces the problems of a watch, and reports the problems of all watches.
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
