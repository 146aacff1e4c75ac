// SPDX-License-Identifier: Apache-2.0

// Package cacheconfig reads pod-cache-config.yaml: which functions get pods at the
// start, and what is different for them. There are two formats: a map of image to
// time to live, and a list of objects with more settings.
package cacheconfig

import (
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// Entry is one function. A setting of zero is not set: the service's own applies.
type Entry struct {
	// Image is the function's canonical name.
	Image string
	// TTL is how long an unused pod lives.
	TTL time.Duration
	// MaxWaitlistLength is how many evaluations there may be for each pod before a
	// further pod is started.
	MaxWaitlistLength int
	// MaxPods is how many pods the function may have.
	MaxPods int
	// MinPods is how many pods are kept although no evaluation needs them; nil if not set. A
	// FunctionConfig says it elsewhere.
	MinPods *int
	// MaxConcurrency is how many evaluations one pod may run at once.
	MaxConcurrency int
	// MaxQueue is how many evaluations may wait.
	MaxQueue int
	// ReadyTimeout is how long a pod may take to become ready.
	ReadyTimeout time.Duration
	// MaxEvaluationTime is how long one evaluation may take.
	MaxEvaluationTime time.Duration
	// Prefork is how many processes of the function a pod keeps started; nil if not set.
	Prefork *int
	// Resources are what is different for the function's container, one by one; nil if
	// nothing is.
	Resources *corev1.ResourceRequirements
	// Overrides are what the function's pods have in place of the template's values; nil if
	// nothing is overridden. The file has none.
	Overrides *podspec.Overrides
}

// Parse returns the entries in their order. Names without slash are looked up under
// defaultPrefix. The warnings are sentences for users about what is ignored, such as
// a second entry for an image. An error names each entry that is wrong; there are no
// entries then.
func Parse(data []byte, defaultPrefix string) (entries []Entry, warnings []string, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, nil, fmt.Errorf("the pod cache configuration is not YAML: %w", err)
	}
	if len(document.Content) == 0 {
		return nil, nil, nil
	}
	r := reader{prefix: defaultPrefix, seen: make(map[string]int)}
	switch root := resolveAlias(document.Content[0]); {
	case root.Kind == yaml.MappingNode:
		r.readMap(root)
	case root.Kind == yaml.SequenceNode:
		r.readList(root)
	case root.Tag != nullTag:
		return nil, nil, errors.New(`the pod cache configuration is neither a map, such as "IMAGE: 30m", ` +
			`nor a list, such as "- name: IMAGE"`)
	}
	if err := errors.Join(r.problems...); err != nil {
		return nil, nil, err
	}
	return r.entries, r.warnings, nil
}

// reader reads one file.
type reader struct {
	prefix   string
	seen     map[string]int // the lines of images, by key
	entries  []Entry
	warnings []string
	problems []error
}

// readMap reads a map of image to time to live.
func (r *reader) readMap(root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], resolveAlias(root.Content[i+1])
		e := entry{where: fmt.Sprintf("line %d: %q", name.Line, name.Value)}
		e.setDuration(&e.TTL, "the time to live", value)
		r.addEntry(&e, name)
	}
}

// readList reads a list of objects.
func (r *reader) readList(root *yaml.Node) {
	for i, item := range root.Content {
		line := item.Line
		item = resolveAlias(item)
		if item.Kind != yaml.MappingNode {
			r.problems = append(r.problems, fmt.Errorf("line %d: entry %d is not an object with at least a name", line, i+1))
			continue
		}
		e := entry{where: fmt.Sprintf("line %d: entry %d", line, i+1)}
		name := e.readObject(item)
		if name == nil || resolveAlias(name).Value == "" {
			r.problems = append(r.problems, fmt.Errorf("%s has no name: it has to be the function's image", e.where))
			continue
		}
		r.addEntry(&e, resolveAlias(name))
	}
}

// addEntry takes an entry up, unless there is one for its image already.
func (r *reader) addEntry(e *entry, name *yaml.Node) {
	image, err := imagename.Parse(name.Value, r.prefix)
	if err != nil {
		e.addProblem("%w", err)
	}
	r.problems = append(r.problems, e.problems...)
	r.warnings = append(r.warnings, e.warnings...)
	if err != nil {
		return
	}
	if line, ok := r.seen[image.Key()]; ok {
		r.warnings = append(r.warnings, fmt.Sprintf("%s is ignored: line %d has %s already", e.where, line, image))
		return
	}
	r.seen[image.Key()] = name.Line
	e.Image = image.String()
	r.entries = append(r.entries, e.Entry)
}

// nullTag is the tag of what is not there.
const nullTag = "!!null"

// resolveAlias returns what an alias stands for, and other nodes as they are.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
