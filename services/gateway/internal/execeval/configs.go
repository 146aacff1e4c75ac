// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
)

// withConfigs returns a copy of t in which FunctionConfig objects (a custom resource of Porch) override the
// configuration file. It omits FunctionConfigs whose binary cannot be executed, and returns their problems. Paths of
// binaries may be relative to dir. prefork is the default number of spare processes, started in advance, of a binary.
func (t *table) withConfigs(configs []binaries.Binary, dir string, prefork int) (*table, binaries.Problems) {
	all := &table{
		binaries: maps.Clone(t.binaries), prefork: maps.Clone(t.prefork), maxTime: t.maxTime, tags: maps.Clone(t.tags),
		ranges: map[string][]tagRange{},
	}
	problems := binaries.Problems{}
	own, exact := map[string]int{}, map[string]bool{}
	for _, c := range configs {
		path := c.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if problem := checkBinary(path, dir); problem != "" {
			problems[c.Config] = problem
			continue
		}
		if _, ok := own[path]; c.Prefork != nil && !ok {
			own[path] = *c.Prefork
		}
		for _, image := range c.Images {
			all.mapImage(image, path, exact)
		}
	}
	maps.Copy(all.prefork, own)
	all.prefork = all.mappedPrefork(prefork)
	return all, problems
}

// mapImage maps an image of a FunctionConfig object to a binary. The mapping overrides the configuration file. The
// image's tag is exact or a version constraint. An exact tag takes precedence over constraints of other
// FunctionConfigs. Therefore mapImage adds an image with an exact tag to the set exact, and later calls keep its
// mapping.
func (t *table) mapImage(image, binary string, exact map[string]bool) {
	i := strings.LastIndexByte(image, ':')
	name := imagename.Name{Repository: image[:max(i, 0)], Tag: image[i+1:]}
	tags := t.tags[name.Repository]
	c, err := tagconstraint.Parse(name.Tag)
	if _, literal := c.Exact(); literal && err == nil {
		t.binaries[name.Key()] = binary
		exact[name.Key()] = true
		if !slices.Contains(tags, name.Tag) {
			t.tags[name.Repository] = append(slices.Clip(tags), name.Tag)
		}
		return
	}
	t.ranges[name.Repository] = append(t.ranges[name.Repository], tagRange{c, binary})
	for _, tag := range tags { // overrides the matching tags of the configuration file
		other := imagename.Name{Repository: name.Repository, Tag: tag}.Key()
		if _, ok := c.Highest([]string{tag}); ok && !exact[other] {
			delete(t.binaries, other)
		}
	}
}

// checkBinary returns the problem with a FunctionConfig's binary, or an empty string. The binary must be an executable
// file in dir, because users who write FunctionConfigs could otherwise run any program of this machine.
func checkBinary(path, dir string) string {
	info, err := os.Stat(path)
	switch within, relErr := filepath.Rel(dir, path); {
	case relErr != nil || !filepath.IsLocal(within):
		return "spec.binaryExecutor.path is outside of the function runner's directory of functions: " + dir
	case err != nil:
		return fmt.Sprintf("spec.binaryExecutor.path is not in the function runner's image: %v", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Sprintf("spec.binaryExecutor.path is not a program that can be run: %s has the mode %v",
			path, info.Mode())
	}
	return ""
}
