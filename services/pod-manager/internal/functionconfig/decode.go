// SPDX-License-Identifier: Apache-2.0

package functionconfig

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// maxPrefixes and maxTags are the maximum numbers of prefixes and tags in a FunctionConfig.
	maxPrefixes = 100
	maxTags     = 1000
	// minTTL is the minimum time to live of an unused pod. With a shorter time, a pod in use could expire before the
	// pod-manager extends its expiry.
	minTTL = 5 * time.Second
)

// Decode converts a FunctionConfig object to a [Config]. It never fails, but lists the object's problems in the result.
// Image names without a registry get the prefix defaultPrefix. secrets are the names of Secrets that an object must not
// pass to its pods.
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

// readPart decodes a part of a FunctionConfig, such as podExecutor. It appends the part's problems to the list found,
// and returns nil if the part is missing or invalid.
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

// repository returns the canonical repository of an image. prefix is the image's registry and path. defaultPrefix
// replaces an empty prefix.
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

// readTags returns the field tags. It contains tags such as v1.2, and version constraints such as ~0.4.
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

// settings contains the settings in the annotation [SettingsAnnotation] of a FunctionConfig.
type settings struct {
	entry   cacheconfig.Entry
	minPods int
	prefork *int
	secrets []string // names of Secrets that an object must not pass to its pods
}

// maxSettings is the maximum size of [SettingsAnnotation] in bytes. All settings together require much less.
const maxSettings = 4 << 10

// readSettings parses the annotation [SettingsAnnotation]. If any value is invalid, the whole annotation is ignored.
func readSettings(text string, found *problems) settings {
	if len(text) > maxSettings {
		found.add("the annotation %s has %d bytes: it may have up to %d", SettingsAnnotation, len(text), maxSettings)
		return settings{}
	}
	var fields map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &fields); err != nil {
		found.add(`the annotation %s is not an object in JSON or YAML, such as {"minPods": 1}`, SettingsAnnotation)
		return settings{}
	}
	var own problems
	o := object{path: "annotation " + SettingsAnnotation, fields: fields, problems: &own}
	var s settings
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		s.read(o, field)
	}
	*found = append(*found, own...)
	if len(own) > 0 {
		return settings{}
	}
	return s
}

func (s *settings) read(o object, field string) {
	switch field {
	case "minPods":
		if n := o.number(field, math.MaxInt32); n != nil {
			s.minPods = *n
		}
	case "maxConcurrency":
		s.entry.MaxConcurrency = o.count(field)
	case "maxQueue":
		s.entry.MaxQueue = o.count(field)
	case "podReadyTimeout":
		s.entry.ReadyTimeout = o.duration(field, time.Second)
	case "prefork":
		s.prefork = o.number(field, function.MaxPrefork)
	default:
		o.problems.add("%s is not known: the settings are minPods, maxConcurrency, maxQueue, podReadyTimeout and prefork",
			o.pathOf(field))
	}
}

// readOverrides returns the overrides of the pod template in the field templateOverrides, or nil if it is empty.
func readOverrides(o object, secrets []string) *podspec.Overrides {
	if len(o.fields) == 0 {
		return nil
	}
	all := &podspec.Overrides{ServiceAccount: o.text("serviceAccountName")}
	if all.ServiceAccount != "" && len(validation.IsDNS1123Subdomain(all.ServiceAccount)) > 0 {
		o.addInvalid("serviceAccountName", all.ServiceAccount, "the name of a ServiceAccount")
	}
	var context corev1.PodSecurityContext
	if o.decode("securityContext", &context, "a pod's security context") {
		all.SecurityContext = &context
	}
	all.Init = readContainer(o.object("initContainer"), secrets)
	all.Function = readContainer(o.object("container"), secrets)
	return all
}

func readContainer(o object, secrets []string) podspec.ContainerOverrides {
	var c podspec.ContainerOverrides
	amounts := o.object("resources")
	amounts.decode("requests", &c.Requests, "quantities, such as {cpu: 100m}")
	amounts.decode("limits", &c.Limits, "quantities, such as {memory: 1Gi}")
	for _, problem := range podspec.CheckResources(c.Requests, c.Limits) {
		o.problems.add("%s: %v", o.pathOf("resources"), problem)
	}
	o.decode("envFrom", &c.EnvFrom, "a list of sources of a container's variables")
	if o.decode("env", &c.Env, "a list of a container's variables") {
		checkEnv(o, c.Env)
	}
	for _, secret := range secretsOf(c) {
		if slices.Contains(secrets, secret) {
			o.problems.add("%s names the Secret %q: its key would let functions pose as our programs", o.path, secret)
		}
	}
	return c
}

// secretsOf returns the names of the Secrets from which a container gets environment variables.
func secretsOf(c podspec.ContainerOverrides) []string {
	var names []string
	for _, source := range c.EnvFrom {
		if source.SecretRef != nil {
			names = append(names, source.SecretRef.Name)
		}
	}
	for _, variable := range c.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			names = append(names, variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	return names
}

// checkEnv adds a problem for each environment variable that would make Kubernetes reject the pods.
func checkEnv(o object, env []corev1.EnvVar) {
	for i, variable := range env {
		switch {
		case variable.Name == "" || strings.ContainsAny(variable.Name, "=\x00"):
			o.problems.add("%s[%d] has the name %s: it must be the name of a variable",
				o.pathOf("env"), i, formatValue(variable.Name))
		case variable.Value != "" && variable.ValueFrom != nil:
			o.problems.add("%s[%d] has both value and valueFrom: it must have only one of them", o.pathOf("env"), i)
		}
	}
}
