// SPDX-License-Identifier: Apache-2.0

// Package binaries carries the list of images that run as local binaries. The pod-manager reads the list from
// FunctionConfig objects and sends it to the gateway, in the same process or over RPC.
package binaries

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Binary is a program that the gateway runs in place of some images.
type Binary struct {
	// Config is the name of the FunctionConfig.
	Config string
	// Path is the path of the program, absolute or relative to the gateway's directory of functions.
	Path string
	// Images contains the canonical names of the images that the program stands for.
	Images []string
	// Prefork is the number of spare processes to start for the program. Nil means the gateway's default.
	Prefork *int
}

// equalBinaries reports whether two binaries are the same.
func equalBinaries(a, b Binary) bool {
	prefork := a.Prefork == b.Prefork || (a.Prefork != nil && b.Prefork != nil && *a.Prefork == *b.Prefork)
	return prefork && a.Config == b.Config && a.Path == b.Path && slices.Equal(a.Images, b.Images)
}

// Problems maps the name of a FunctionConfig to the reason why a gateway cannot use its binary. Nil means that no
// gateway has reported yet.
type Problems map[string]string

// Source provides the list of binaries.
type Source interface {
	// Watch calls use with the complete list as soon as it is available, and again after each change, until ctx is
	// done or the connection to the source is lost. Calls do not overlap. Lists are shared, so use must not change
	// them. The problems that use returns appear in the status of FunctionConfigs until the watch stops or use
	// returns different problems. If use returns nil, the status does not change.
	Watch(ctx context.Context, use func([]Binary) Problems) error
}

// Board is a Source in this process: it passes the list of the latest call of Put to all watches. Use [NewBoard].
type Board struct {
	report    func(Problems)
	reporting sync.Mutex
	reports   map[*Problems]Problems // latest problems of each watch

	mu      sync.Mutex
	known   bool
	list    []Binary
	changed chan struct{} // closed by the next Put
}

// NewBoard returns a board without a list. It calls report with the problems of all running watches whenever they
// change.
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
	b.known = true
	b.list = list
	close(b.changed)
	b.changed = make(chan struct{})
}

// latestList returns the list and a channel that the next Put closes. Known is false before the first Put.
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

// reportProblems stores the problems of a watch, and then calls b.report with the problems of all watches.
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
