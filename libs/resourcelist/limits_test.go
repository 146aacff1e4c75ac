// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// numbered returns n lines, each with its number.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// costly are lists that are small, or decode without end, or to something large: each for
// a size.
var costly = map[string]func(size int) string{
	"tags":             func(n int) string { return head + "results:\n- tags:\n" + numbered("    a%d: b\n", n) },
	"one tag":          func(n int) string { return head + "results:\n- tags:\n" + strings.Repeat("    a: b\n", n) },
	"fields of result": func(n int) string { return head + "results:\n- message: a\n" + numbered("  a%d: b\n", n) },
	"field's value": func(n int) string {
		return head + "results:\n- field:\n    currentValue:\n" + numbered("      a%d: b\n", n)
	},
	"aliases as keys": func(n int) string {
		return head + "results:\n- message: &m a\n  tags:\n" + strings.Repeat("    *m : b\n", n)
	},
	"collections as keys": func(n int) string {
		return head + "results:\n- field: {currentValue: {" + strings.Repeat("[a]: b, ", n) + "}}\n"
	},
	"merged keys": func(n int) string {
		return head + "x: &x\n" + numbered("  a%d: b\n", n) + "results:\n- tags:\n    <<: *x\n"
	},
	"aliased tags": func(n int) string {
		return head + "results:\n- tags: &t\n" + numbered("    a%d: b\n", 100) + strings.Repeat("- tags: *t\n", n)
	},
	"results":        func(n int) string { return head + "results:\n" + strings.Repeat("- message: a\n", 50*n) },
	"tag directives": func(n int) string { return numbered("%%TAG !a%d! x\n", n) + "--- {kind: ResourceList}" },
	"directives later": func(n int) string {
		return head + "...\n" + numbered("%%TAG !a%d! x\n", n) + "--- {kind: ResourceList}"
	},
	"values":      func(n int) string { return head + "items: &a [" + strings.Repeat("a,", 100*n) + "]\n" },
	"empty items": func(n int) string { return head + "x: &a b\nitems:\n" + strings.Repeat("-\n", 100*n) },
}

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
