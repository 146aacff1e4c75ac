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

// table maps images to binaries. A complete table is immutable.
type table struct {
	// binaries maps the key of an image ([imagename.Name.Key]) to the path of a binary.
	binaries map[string]string
	// ranges maps a repository to the version constraints that FunctionConfigs contain for it. An image in binaries
	// takes precedence over ranges.
	ranges map[string][]tagRange
	// prefork maps a binary to its number of spare processes.
	prefork map[string]int
	// maxTime maps a binary to its own time limit. Binaries without an own limit are missing.
	maxTime map[string]time.Duration
	// tags maps a repository to the exact tags that have a binary.
	tags map[string][]string
	// repeated are images that occur in several entries. unknown are the names of unknown fields. Both are logged as
	// warnings.
	repeated, unknown []string
}

// tagRange is a version constraint, and the binary for all tags that satisfy it.
type tagRange struct {
	tags   tagconstraint.Constraint
	binary string
}

func (t *table) findBinary(image imagename.Name) (path string, ok bool) {
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

// parseTable parses a configuration file. Binaries are in dir. Image names without a slash get prefix. If an image
// occurs in several entries, the first entry is used. A function gets prefork spare processes unless an entry sets
// another number. If several entries of a function set a number or a time limit, the first value is used.
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
			t.addImage(name, filepath.Join(dir, entry.Function))
		}
		if err := t.setPrefork(filepath.Join(dir, entry.Function), entry.Prefork); err != nil {
			return nil, fmt.Errorf("functions[%d].prefork: %w", i, err)
		}
		if err := t.setMaxTime(filepath.Join(dir, entry.Function), entry.MaxEvaluationTime); err != nil {
			return nil, fmt.Errorf("functions[%d].maxEvaluationTime: %w", i, err)
		}
	}
	t.prefork = t.mappedPrefork(prefork)
	return t, nil
}

// mappedPrefork returns the number of spare processes of each binary that has an image. It is prefork for a binary
// without a number of its own.
func (t *table) mappedPrefork(prefork int) map[string]int {
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

// setPrefork stores an entry's number of spare processes, unless an earlier entry of the binary has set the number.
// processes is nil if the entry sets no number.
func (t *table) setPrefork(binary string, processes *int) error {
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

// setMaxTime stores an entry's time limit, unless an earlier entry of the binary has set the limit. most is nil if
// the entry sets no limit.
func (t *table) setMaxTime(binary string, most *time.Duration) error {
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

// checkName rejects names that do not denote a file directly in the directory of functions.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not the name of a file in the directory of functions", name)
	}
	return nil
}

// addImage maps the image name to binary. If the image already has a binary, addImage only records the image as
// repeated.
func (t *table) addImage(name imagename.Name, binary string) {
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

// missingBinaries returns the sorted paths of binaries whose files do not exist.
func (t *table) missingBinaries() []string {
	var paths []string
	for binary := range maps.Values(t.binaries) {
		if _, err := os.Stat(binary); err != nil && !slices.Contains(paths, binary) {
			paths = append(paths, binary)
		}
	}
	slices.Sort(paths)
	return paths
}
