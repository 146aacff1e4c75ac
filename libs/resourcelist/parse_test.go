// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// TestParseRealisticLists holds the fast path to lists as packages have them.
func TestParseRealisticLists(t *testing.T) {
	data := realisticList(9)
	got, ok := resourcelist.Recognise(data)
	if !ok {
		t.Fatal("the list needs a full decode")
	}
	want, err := resourcelist.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-full decode +fast path):\n%s", diff)
	}
}

// TestParseAllocations holds the fast path to its promise that a list's size costs
// no memory.
func TestParseAllocations(t *testing.T) {
	few := append(realisticList(3), "extra:\n"...)
	many := append(realisticList(99), "extra:\n"...)
	// Allocations are counted for the whole process, so what the runtime does
	// meanwhile can only add to them: the least count is the list's own.
	allocations := func(data []byte) float64 {
		least := math.Inf(1)
		for range 20 {
			least = min(least, testing.AllocsPerRun(5, func() {
				if _, ok := resourcelist.Recognise(data); !ok {
					t.Fatal("the list needs a full decode")
				}
			}))
		}
		return least
	}
	if few, many := allocations(few), allocations(many); many > few {
		t.Errorf("3 items cost %v allocations, 99 cost %v", few, many)
	}
}
