// SPDX-License-Identifier: Apache-2.0

package functionconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
)

// maxImages is the maximum number of images that all FunctionConfigs together may configure. Images of binaries and
// images of pods are counted separately.
const maxImages = 100_000

// Set combines the local binaries and the pod settings of all FunctionConfigs. It is immutable. The zero value is the
// Set without FunctionConfigs.
type Set struct {
	// Binaries contains the local binaries, sorted by the age of their FunctionConfigs, oldest first. The tag of an
	// image may be a version constraint.
	Binaries []binaries.Binary
	// pods contains the settings for pods, by "repository:tag", or only by repository if they apply to all tags.
	pods map[string]*Function
	// ranges contains the settings for version constraints such as ~0.4, by repository. Settings from older objects
	// come first, because they take precedence.
	ranges map[string][]tagRange
	// tagged maps a repository to the oldest settings for single tags. A younger FunctionConfig for all tags of the
	// repository gets a problem, because its settings do not apply to these tags.
	tagged map[string]*Function
	// problems contains the problems of each object as texts for users, by the object's name.
	problems map[string][]string
}

// tagRange contains settings for the tags that satisfy a version constraint.
type tagRange struct {
	tags     tagconstraint.Constraint
	function *Function
}

// Function contains the settings for the pods of an image.
type Function struct {
	*Pod
	config string // name of the FunctionConfig
}

// Compile combines FunctionConfigs into a Set. If two objects configure the same image, the older object wins, and
// the younger object gets a problem. Image names without a registry get the prefix defaultPrefix.
func Compile(configs []*Config, defaultPrefix string) *Set {
	s := &Set{
		pods: map[string]*Function{}, ranges: map[string][]tagRange{}, tagged: map[string]*Function{},
		problems: map[string][]string{},
	}
	byAge := slices.SortedFunc(slices.Values(configs), func(a, b *Config) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
	taken := map[string]string{} // names of FunctionConfigs, by image of their binaries
	for _, c := range byAge {
		found := problems(slices.Clone(c.Problems))
		repositories := c.repositories(defaultPrefix)
		if c.Binary != nil {
			s.addBinary(c, repositories, taken, &found)
		}
		if c.Pod != nil {
			s.addPod(c, repositories, &found)
		}
		if len(found) > 0 {
			s.problems[c.Name] = found
		}
	}
	return s
}

// repositories returns the canonical repositories of an object's images, without duplicates.
func (c *Config) repositories(defaultPrefix string) []string {
	all := make([]string, 0, len(c.Prefixes))
	for _, prefix := range c.Prefixes {
		name, err := repository(prefix, c.Image, defaultPrefix)
		if err == nil && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// addBinary adds the local binary of a FunctionConfig for its images. taken maps each image that an older
// FunctionConfig already configures to the older object's name. For such an image, addBinary only reports a problem.
func (s *Set) addBinary(c *Config, repositories []string, taken map[string]string, found *problems) {
	b := binaries.Binary{Config: c.Name, Path: c.Binary.Path, Prefork: c.Binary.Prefork}
	for _, repository := range repositories {
		for _, tag := range c.Binary.Tags {
			name := imagename.Name{Repository: repository, Tag: tag}
			if owner, ok := taken[name.Key()]; ok {
				found.conflict(name.Key(), "binaryExecutor", owner)
				continue
			}
			if len(taken) >= maxImages {
				found.tooMany("binaryExecutor")
				continue
			}
			taken[name.Key()] = c.Name
			b.Images = append(b.Images, name.String())
		}
	}
	if len(b.Images) > 0 {
		s.Binaries = append(s.Binaries, b)
	}
}

func (s *Set) addPod(c *Config, repositories []string, found *problems) {
	f := &Function{c.Pod, c.Name}
	for _, repository := range repositories {
		if len(c.Pod.Tags) == 0 {
			if owner := s.tagged[repository]; owner != nil {
				found.conflict("a tag of "+repository, "podExecutor", owner.config)
			}
			s.claim(repository, f, s.pods[repository], found)
			continue
		}
		for _, tag := range c.Pod.Tags {
			key := imagename.Name{Repository: repository, Tag: tag}.Key()
			if s.claim(key, f, cmp.Or(s.pods[key], s.pods[repository]), found) {
				s.addRange(repository, tag, f)
			}
		}
		if s.tagged[repository] == nil {
			s.tagged[repository] = f
		}
	}
}

// addRange adds the settings for tags that satisfy a version constraint. It does nothing for a plain tag.
func (s *Set) addRange(repository, tag string, f *Function) {
	c, err := tagconstraint.Parse(tag)
	if _, exact := c.Exact(); err == nil && !exact {
		s.ranges[repository] = append(s.ranges[repository], tagRange{c, f})
	}
}

// claim stores f as the settings for an image's pods, and returns true. If an older FunctionConfig (owner, or nil)
// already configures the image, or there are too many images, it adds a problem and returns false.
func (s *Set) claim(key string, f, owner *Function, found *problems) bool {
	switch {
	case owner != nil:
		found.conflict(key, "podExecutor", owner.config)
	case len(s.pods) >= maxImages:
		found.tooMany("podExecutor")
	default:
		s.pods[key] = f
		return true
	}
	return false
}

// maxConflicts is the maximum number of conflicting images that the status of an object lists.
const maxConflicts = 5

// conflict adds the problem that an older FunctionConfig already configures an image. The argument owner is the name of
// the older object, and part is the conflicting field, such as podExecutor.
func (p *problems) conflict(image, part, owner string) {
	const end = "which is older: remove the image from one of them"
	conflicts := 0
	for _, other := range *p {
		if strings.HasSuffix(other, end) {
			conflicts++
		}
	}
	if conflicts >= maxConflicts {
		p.addOnce("older FunctionConfigs also configure further images")
		return
	}
	p.add("%s of %s belongs to the FunctionConfig %q, %s", part, image, owner, end)
}

// tooMany adds the problem that some images of a FunctionConfig are ignored. The reason is that all objects together
// configure more than maxImages. executor is the field with the images, such as podExecutor.
func (p *problems) tooMany(executor string) {
	p.addOnce(fmt.Sprintf("spec.%s is not used for all its images: all FunctionConfigs together have more than %d",
		executor, maxImages))
}

// addOnce adds a text to the problems, unless they already contain it.
func (p *problems) addOnce(text string) {
	if !slices.Contains(*p, text) {
		*p = append(*p, text)
	}
}

// Problems returns the problems of the FunctionConfig with the given name, as texts for users.
func (s *Set) Problems(name string) []string {
	return s.problems[name]
}

// Pod returns the settings for the pods of an image. Settings for the image's tag take precedence, then the oldest
// settings with a version constraint that the tag satisfies, then settings for all tags. Only settings for all tags
// apply to an image without a tag.
func (s *Set) Pod(name imagename.Name) (*Function, bool) {
	if name.Tag != "" {
		if f, ok := s.pods[name.Repository+":"+name.Tag]; ok {
			return f, true
		}
		for _, r := range s.ranges[name.Repository] {
			if _, ok := r.tags.Highest([]string{name.Tag}); ok {
				return r.function, true
			}
		}
	}
	f, ok := s.pods[name.Repository]
	return f, ok
}

// MinPods returns the minimum number of pods for each image whose tag a FunctionConfig lists, by canonical image name.
// The tag in this name may be a version constraint.
func (s *Set) MinPods() map[string]int {
	kept := map[string]int{}
	for image, f := range s.pods {
		if len(f.Tags) > 0 {
			kept[image] = f.MinPods
		}
	}
	return kept
}
