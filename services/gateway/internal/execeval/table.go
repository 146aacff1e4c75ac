// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
)

// table maps images to binaries. It does not change once it is made.
type table struct {
	// binaries maps an image's key to the path of its binary.
	binaries map[string]string
	// ranges are the binaries for the tags that satisfy a version constraint, by repository. Exact tags win.
	ranges map[string][]tagRange
	// prefork maps binaries to how many processes of each are kept started.
	prefork map[string]int
	// maxTime maps binaries to how long each may run. It has only binaries with a limit of
	// their own.
	maxTime map[string]time.Duration
	// tags are the tags of each repository.
	tags map[string][]string
	// repeated are images that a later entry claims again, and unknown the unknown fields:
	// both are logged as warnings.
	repeated, unknown []string
}

// tagRange has a binary for the tags that satisfy a version constraint.
type tagRange struct {
	tags   tagconstraint.Constraint
	binary string
}

// binary returns the binary of an image.
func (t *table) binary(image imagename.Name) (path string, ok bool) {
	if path, ok = t.binaries[image.Key()]; ok || image.Digest != "" {
		return path, ok
	}
	for _, r := range t.ranges[image.Repository] {
		if _, ok := r.tags.Highest([]string{image.Tag}); ok {
			return r.binary, true
		}
	}
	return "", false
}

// parseTable reads a configuration file. Binaries are in dir; image names without
// a slash are under prefix. The first entry for an image wins. Of each function,
// prefork processes are kept started unless its first entry that has a number sets
// another one; likewise it runs as long as its first entry that has a time allows.
func parseTable(content []byte, dir, prefix string, prefork int) (*table, error) {
	file, unknown, err := parseFile(content)
	if err != nil {
		return nil, err
	}
	t := &table{
		binaries: map[string]string{}, tags: map[string][]string{}, prefork: map[string]int{},
		maxTime: map[string]time.Duration{}, unknown: unknown,
	}
	for i, entry := range file.Functions {
		if err := checkName(entry.Function); err != nil {
			return nil, fmt.Errorf("functions[%d].function: %w", i, err)
		}
		for j, image := range entry.Images {
			name, err := imagename.Parse(image, prefix)
			if err != nil {
				return nil, fmt.Errorf("functions[%d].images[%d]: %w", i, j, err)
			}
			t.add(name, filepath.Join(dir, entry.Function))
		}
		if err := t.keep(filepath.Join(dir, entry.Function), entry.Prefork); err != nil {
			return nil, fmt.Errorf("functions[%d].prefork: %w", i, err)
		}
		if err := t.bound(filepath.Join(dir, entry.Function), entry.MaxEvaluationTime); err != nil {
			return nil, fmt.Errorf("functions[%d].maxEvaluationTime: %w", i, err)
		}
	}
	t.prefork = t.mapped(prefork)
	return t, nil
}

// mapped returns how many processes are kept of each binary that an image is mapped to.
// The default is prefork.
func (t *table) mapped(prefork int) map[string]int {
	all := map[string]int{}
	used := slices.Collect(maps.Values(t.binaries))
	for _, ranges := range t.ranges {
		for _, r := range ranges {
			used = append(used, r.binary)
		}
	}
	for _, binary := range used {
		n, ok := t.prefork[binary]
		if !ok {
			n = prefork
		}
		all[binary] = n
	}
	return all
}

// keep records how many spare processes of binary an entry sets; nil if it sets none.
func (t *table) keep(binary string, processes *int) error {
	if processes == nil {
		return nil
	}
	if n := *processes; n < 0 || n > function.MaxPrefork {
		return fmt.Errorf("%d is not a number from 0 (off) to %d", n, function.MaxPrefork)
	}
	if _, ok := t.prefork[binary]; !ok {
		t.prefork[binary] = *processes
	}
	return nil
}

// bound records how long binary may run by an entry; nil if it sets no bound.
func (t *table) bound(binary string, most *time.Duration) error {
	if most == nil {
		return nil
	}
	if *most <= 0 {
		return fmt.Errorf("%v is not a time of more than zero, such as 30s or 10m", *most)
	}
	if _, ok := t.maxTime[binary]; !ok {
		t.maxTime[binary] = *most
	}
	return nil
}

// checkName rejects names that lead out of the directory of functions.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not the name of a file in the directory of functions", name)
	}
	return nil
}

// add maps name to binary unless it is mapped already.
func (t *table) add(name imagename.Name, binary string) {
	key := name.Key()
	if _, ok := t.binaries[key]; ok {
		t.repeated = append(t.repeated, key)
		return
	}
	t.binaries[key] = binary
	if name.Digest == "" {
		t.tags[name.Repository] = append(t.tags[name.Repository], name.Tag)
	}
}

// missing returns the binaries that are not there, sorted.
func (t *table) missing() []string {
	var paths []string
	for binary := range maps.Values(t.binaries) {
		if _, err := os.Stat(binary); err != nil && !slices.Contains(paths, binary) {
			paths = append(paths, binary)
		}
	}
	slices.Sort(paths)
	return paths
}
