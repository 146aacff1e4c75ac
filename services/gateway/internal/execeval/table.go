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

// table maps images to local binaries, and contains the settings of the binaries. The evaluator replaces its table
// instead of changing it. Therefore evaluations can read a table without a lock.
type table struct {
	// binaries maps the key of an image (see [imagename.Name.Key]) to the path of its binary.
	binaries map[string]string
	// ranges maps a repository to version constraints for its tags, from FunctionConfig objects. An image with an exact
	// tag in the map binaries takes precedence over these constraints.
	ranges map[string][]tagRange
	// prefork maps a binary to the number of its spare processes, which are started in advance.
	prefork map[string]int
	// maxTime maps a binary to its own time limit. It omits binaries without their own limit.
	maxTime map[string]time.Duration
	// tags maps a repository to its tags that are mapped to a binary. Version constraints are only in the map ranges.
	tags map[string][]string
	// repeated are images that occur in several entries of the configuration file. ignored describes the parts of the
	// file that are ignored, such as unknown fields. Both are logged as warnings.
	repeated, ignored []string
}

// tagRange maps all tags that satisfy a version constraint to a binary.
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

// parseTable parses a configuration file. If an image or a setting of a binary is repeated, the first entry applies.
// The directory dir contains the binaries. Image names without a slash get the given prefix. The argument prefork is
// the number of spare processes, started in advance, for each binary without its own setting.
func parseTable(content []byte, dir, prefix string, prefork int) (*table, error) {
	file, ignored, err := parseFile(content)
	if err != nil {
		return nil, err
	}
	t := &table{
		binaries: map[string]string{}, tags: map[string][]string{}, prefork: map[string]int{},
		maxTime: map[string]time.Duration{}, ignored: ignored,
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

// mappedPrefork returns the number of spare processes, started in advance, for each binary to which an image is mapped.
// The argument prefork is the number for binaries without their own setting.
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

// setPrefork sets the number of spare processes, started in advance, for a binary. It does nothing if processes is nil,
// or if an earlier entry of the configuration file has set the number.
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

// setMaxTime sets the time limit of a binary to *most. It does nothing if most is nil, or if an earlier entry of the
// configuration file has set a limit.
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

// checkName checks the name of a binary in the configuration file. The name must be a file directly in the
// directory of the binaries, so that the configuration cannot refer to programs elsewhere.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not the name of a file in the directory of functions", name)
	}
	return nil
}

// addImage maps an image to a binary. If the image is already mapped, addImage only adds it to t.repeated, for a
// warning.
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

// missingBinaries returns the sorted paths of binaries whose files do not exist, for warnings.
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
