// SPDX-License-Identifier: Apache-2.0

package functionconfig

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
)

const (
	// maxPrefixes and maxTags limit the lengths of the lists in a FunctionConfig object.
	maxPrefixes = 100
	maxTags     = 1000
	// minTTL is the minimum time to live of an unused pod in a FunctionConfig. Replicas of the pod-manager cannot
	// agree on a shorter time, see [pool.Limits].
	minTTL = 5 * time.Second
)

// Decode converts a FunctionConfig object to a [Config]. defaultPrefix is the registry and path of image names
// without a registry. secrets are the names of Secrets that an object must not pass to its pods. Decode never
// fails: the result lists the problems of the object.
func Decode(u *unstructured.Unstructured, defaultPrefix string, secrets ...string) *Config {
	c := &Config{
		Name: u.GetName(), UID: string(u.GetUID()),
		Created: u.GetCreationTimestamp().Time, Generation: u.GetGeneration(),
	}
	var found problems
	spec := object{fields: u.Object, problems: &found}.object("spec")
	if c.readImage(spec, defaultPrefix) {
		own := readSettings(u.GetAnnotations()[SettingsAnnotation], &found)
		c.Binary = readPart(spec, "binaryExecutor", &found, own.binary)
		own.secrets = secrets
		c.Pod = readPart(spec, "podExecutor", &found, own.pod)
		if !spec.has("binaryExecutor") && !spec.has("podExecutor") && !spec.has("goExecutor") {
			found.add("spec has no executor: it must have binaryExecutor, podExecutor or goExecutor")
		}
	}
	c.Problems = found
	return c
}

// readPart reads a part of a FunctionConfig, such as podExecutor, by calling the function read. It adds the part's
// problems to found. It returns nil if the part is missing or invalid.
func readPart[T any](spec object, field string, found *problems, read func(object) *T) *T {
	if !spec.has(field) {
		return nil
	}
	var own problems
	spec.problems = &own
	inner := spec.object(field)
	part := read(inner)
	*found = append(*found, own...)
	if len(own) > 0 {
		return nil
	}
	return part
}

// readImage reads the fields image and prefixes of a FunctionConfig. It returns false if they are invalid.
func (c *Config) readImage(spec object, defaultPrefix string) bool {
	before := len(*spec.problems)
	c.Image = spec.text("image")
	c.Prefixes = spec.texts("prefixes", maxPrefixes)
	if len(*spec.problems) > before {
		return false
	}
	if strings.Contains(c.Image, "/") {
		i := strings.LastIndexByte(c.Image, '/')
		spec.problems.add("spec.image is %s: it must be %q, without registry and path: list %q in spec.prefixes",
			formatValue(c.Image), c.Image[i+1:], c.Image[:i])
		return false
	}
	if len(c.Prefixes) == 0 {
		c.Prefixes = []string{""}
	}
	if c.Image == "" || strings.ContainsAny(c.Image, ":@") || !imagename.IsPrefix("example.com/"+c.Image) {
		spec.addInvalid("image", c.Image, "the last part of the image's name without tag, such as set-namespace")
		return false
	}
	for _, prefix := range c.Prefixes {
		if _, err := repository(prefix, c.Image, defaultPrefix); err != nil {
			spec.problems.add("spec.prefixes has %s: it must be %s", formatValue(prefix), imagename.PrefixWanted)
		}
	}
	return len(*spec.problems) == before
}

// repository returns the canonical name of a repository, without tag. The repository consists of prefix, which is a
// registry and path, and of image.
func repository(prefix, image, defaultPrefix string) (string, error) {
	if prefix != "" {
		image = strings.TrimRight(prefix, "/") + "/" + image
	}
	name, err := imagename.Parse(image+":latest", defaultPrefix)
	return name.Repository, err
}

// binary reads the field binaryExecutor.
func (s settings) binary(o object) *Binary {
	b := &Binary{Tags: readTags(o), Path: o.text("path"), Prefork: s.prefork}
	if !o.has("tags") || (o.fields["tags"] != nil && len(b.Tags) == 0 && len(*o.problems) == 0) {
		o.problems.add("%s is empty: list the tags of the images that the binary is for", o.pathOf("tags"))
	}
	switch {
	case len(*o.problems) > 0 && !o.has("path"):
	case b.Path == "" || b.Path == "." || b.Path == "/" || strings.ContainsRune(b.Path, 0):
		o.addInvalid("path", b.Path, "the binary's path, in the directory of functions or absolute")
	case slices.Contains(strings.Split(filepath.ToSlash(b.Path), "/"), ".."):
		o.addInvalid("path", b.Path, `a path without "..", in the directory of functions or absolute`)
	}
	return b
}

// readTags returns the entries of the field tags. These are plain tags, or version constraints such as ~0.4, see
// [tagconstraint.Parse].
func readTags(o object) []string {
	tags := o.texts("tags", maxTags)
	for _, tag := range tags {
		if c, err := tagconstraint.Parse(tag); err != nil || c.IsZero() {
			o.problems.add("%s has %s: it must be a tag or a version constraint, such as ~0.4",
				o.pathOf("tags"), formatValue(tag))
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// pod reads the field podExecutor.
func (s settings) pod(o object) *Pod {
	p := &Pod{Tags: readTags(o), Settings: s.entry, MinPods: s.minPods}
	p.Settings.TTL = o.duration("timeToLive", minTTL)
	p.Settings.MaxPods = o.count("maxParallelExecutions")
	p.Settings.MaxWaitlistLength = o.count("preferredMaxQueueLength")
	p.Settings.Prefork = s.prefork
	p.Settings.Overrides = readOverrides(o.object("templateOverrides"), s.secrets)
	if p.MinPods > 0 && len(p.Tags) == 0 {
		o.problems.add("minPods in the annotation %s takes tags to keep pods of: list them in %s",
			SettingsAnnotation, o.pathOf("tags"))
	}
	return p
}
