// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/unpack"
)

// TestCostGrowsWithTheDepth unpacks files in turn into two directories that are deep. What that costs, measured by
// allocations, grows as the depth does, not as its square: an image may have hundreds of thousands of files.
func TestCostGrowsWithTheDepth(t *testing.T) {
	cost := func(depth int) float64 {
		var entries []entry
		for i := range 100 {
			entries = append(entries, file(strings.Repeat(string(rune('a'+i%2))+"/", depth)+strconv.Itoa(i), ""))
		}
		layer := archive(t, entries...)
		return testing.AllocsPerRun(1, func() {
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			if err := unpack.New(root, limits).Layer(t.Context(), bytes.NewReader(layer)); err != nil {
				t.Error(err)
			}
		})
	}
	if shallow, deep := cost(12), cost(120); deep > 20*shallow {
		t.Errorf("%v allocations at ten times the depth, and %v, want at most 20 times as many", deep, shallow)
	}
}

// TestWaysAreBoundedTogether has a layer whose entries are each behind almost as many steps as one may have.
func TestWaysAreBoundedTogether(t *testing.T) {
	entries := []entry{dir("d"), symlink("l", strings.Repeat("d/../", 500))}
	for i := range 50 {
		entries = append(entries, file("l/"+strings.Repeat("./", i)+strconv.Itoa(i)+"/x", ""))
	}
	_, tree, err := apply(t, limits, archive(t, entries...))
	const want = "more than 32 steps for each file that an image may have"
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), want) || tree.Files() > 100 {
		t.Errorf("error %v after %d files, want a rejection that says %q", err, tree.Files(), want)
	}
}
