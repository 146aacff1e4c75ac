// SPDX-License-Identifier: Apache-2.0

//go:build !race

// These tests decode large lists in one goroutine: with the race detector they take ten times as long, and find no
// more. TestTurns and others decode concurrently. make unit runs these tests without it.

package resourcelist_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// TestCostlyLists holds the limits: what is too costly is rejected.
func TestCostlyLists(t *testing.T) {
	for name, list := range costly {
		t.Run(name, func(t *testing.T) {
			_, err := resourcelist.Parse(t.Context(), []byte(list(2700)))
			if err == nil || len(err.Error()) > 500 {
				t.Errorf("Parse: error %.500v, want a short one", err)
			}
		})
	}
}

// TestLimits has lists that are just within a limit, and just beyond.
func TestLimits(t *testing.T) {
	tests := map[string]struct {
		limit int
		list  func(n int) string
		want  string
	}{
		"results": {
			resourcelist.MaxResults, func(n int) string { return head + "results:\n" + strings.Repeat("- {}\n", n) },
			"there are 100001 results, and may be up to 100000",
		},
		"keys":       {resourcelist.MaxKeys, costly["tags"], "a mapping has 1001 keys, and may have up to 1000"},
		"directives": {resourcelist.MaxTagDirectives, costly["tag directives"], "65 lines begin with %TAG, and up to 64 may"},
		"values": {
			resourcelist.AnyValues - 8, // the others are the envelope's
			func(n int) string { return "{kind: ResourceList, items: [" + strings.Repeat("a,", n) + "]}" },
			"the list has about 262145 values",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := resourcelist.Parse(t.Context(), []byte(tc.list(tc.limit))); err != nil {
				t.Errorf("%d: %v", tc.limit, err)
			}
			_, err := resourcelist.Parse(t.Context(), []byte(tc.list(tc.limit+1)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%d: error %v, want %q", tc.limit+1, err, tc.want)
			}
		})
	}
}

// TestCostGrowsWithTheSize has lists grow fourfold, and their allocations no more.
func TestCostGrowsWithTheSize(t *testing.T) {
	for name, list := range costly {
		t.Run(name, func(t *testing.T) {
			allocations := func(size int) float64 {
				data := []byte(list(size))
				return testing.AllocsPerRun(1, func() { _, _ = resourcelist.Parse(t.Context(), data) })
			}
			if small, large := allocations(100), allocations(400); large > 5*small+1000 {
				t.Errorf("a list of four times the size takes %v allocations, the small one %v", large, small)
			}
		})
	}
}

// countdown is a context that is canceled once its Err was asked for so many times.
type countdown struct {
	context.Context //nolint:containedctx // it is one
	left            int
	after           int // how often Err was asked for after that
}

func (c *countdown) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}
	c.after++
	return context.Canceled
}

// TestADecodeEndsWithItsContext has callers leave while their lists are decoded.
func TestADecodeEndsWithItsContext(t *testing.T) {
	tests := map[string]struct {
		list  string
		looks int // at the context, at least
	}{
		"nodes":   {head + "items: &a [" + strings.Repeat("a,", 100_000) + "]\n", 100},
		"results": {head + "results:\n" + strings.Repeat("- message: a\n", 10_000), 10_000},
		"second":  {head + "...\n---\na: [" + strings.Repeat("a,", 100_000) + "]\n", 100},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			list := tc.list
			whole := &countdown{Context: context.Background(), left: 1 << 30}
			_, _ = resourcelist.Parse(whole, []byte(list))
			asked := 1<<30 - whole.left
			if asked < tc.looks {
				t.Errorf("a decode of %d bytes looks at its context %d times, want %d", len(list), asked, tc.looks)
			}
			for _, left := range []int{0, 1, asked / 2, asked - 1} {
				ctx := &countdown{Context: context.Background(), left: left}
				if _, err := resourcelist.Parse(ctx, []byte(list)); !errors.Is(err, context.Canceled) {
					t.Errorf("after %d of %d looks: error %v, want that of the context", left, asked, err)
				}
				if ctx.after > 4 {
					t.Errorf("after %d of %d looks: it goes on for %d", left, asked, ctx.after)
				}
			}
			resourcelist.Occupy(resourcelist.MaxDecoding, resourcelist.MaxSmallDecoding)() // all turns have ended
		})
	}
}
