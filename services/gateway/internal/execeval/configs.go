// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// with returns the table of a file together with FunctionConfigs, which win for their images,
// and why some of these cannot be used. Relative paths are in dir. Of each function, prefork
// processes are kept started unless a FunctionConfig or the file says otherwise.
func (t *table) with(configs []binaries.Binary, dir string, prefork int) (*table, binaries.Problems) {
	all := &table{
		binaries: maps.Clone(t.binaries), prefork: maps.Clone(t.prefork), maxTime: t.maxTime, tags: maps.Clone(t.tags),
	}
	problems := binaries.Problems{}
	own := map[string]int{}
	for _, c := range configs {
		path := c.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if problem := checkBinary(path); problem != "" {
			problems[c.Config] = problem
			continue
		}
		if _, ok := own[path]; c.Prefork != nil && !ok {
			own[path] = *c.Prefork
		}
		for _, image := range c.Images {
			all.serve(image, path)
		}
	}
	maps.Copy(all.prefork, own)
	all.prefork = all.mapped(prefork)
	return all, problems
}

// serve maps an image to a binary, in place of the one before.
func (t *table) serve(image, binary string) {
	name, err := imagename.Parse(image, "")
	if err != nil {
		return // canonical names are valid
	}
	t.binaries[name.Key()] = binary
	if tags := t.tags[name.Repository]; !slices.Contains(tags, name.Tag) {
		t.tags[name.Repository] = append(slices.Clip(tags), name.Tag)
	}
}

// checkBinary returns why a binary cannot be run; empty if it can.
func checkBinary(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Sprintf("spec.binaryExecutor.path is not in the function runner's image: %v", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Sprintf("spec.binaryExecutor.path is not a program that can be run: %s has the mode %v",
			path, info.Mode())
	}
	return ""
}
