// SPDX-License-Identifier: Apache-2.0

// Package cacheconfig parses the pod cache configuration, the file pod-cache-config.yaml, and reloads it after changes.
// The file lists functions with their settings. Pods of these functions are created at the start. The file is a map
// from image to time to live, or a list of objects with more settings.
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

// Entry contains the settings of a function. A zero value means the default of the pod-manager.
type Entry struct {
	// Image is the function's canonical name.
	Image string
	// TTL is the time after which an unused pod is deleted.
	TTL time.Duration
	// MaxWaitlistLength is the maximum number of evaluations per pod, running or waiting, before another pod starts.
	MaxWaitlistLength int
	// MaxPods is the maximum number of pods.
	MaxPods int
	// MinPods is the minimum number of pods, even while the function is unused. It is nil if not set. It is also nil for a
	// FunctionConfig, whose minimum is in the type Pod of package functionconfig.
	MinPods *int
	// MaxConcurrency is the maximum number of concurrent evaluations in a pod.
	MaxConcurrency int
	// MaxQueue is the maximum number of evaluations of the function that wait for a pod.
	MaxQueue int
	// ReadyTimeout is the time within which a new pod must become ready.
	ReadyTimeout time.Duration
	// MaxEvaluationTime limits an evaluation.
	MaxEvaluationTime time.Duration
	// Prefork is the number of function processes that a pod starts in advance. It is nil if not set.
	Prefork *int
	// Resources replaces single values of the function container's resources, such as the memory limit. It is nil if not
	// set.
	Resources *corev1.ResourceRequirements
	// Overrides replaces values of the pod template. Only FunctionConfigs set it. It is nil if not set.
	Overrides *podspec.Overrides
}

// Parse returns the entries of a pod cache configuration in the order of the file. It adds defaultPrefix to image names
// without a slash. Warnings tell users about ignored parts, such as a second entry for an image. If any entry is
// invalid, Parse returns only an error, which lists all invalid entries.
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

// reader collects the entries, warnings and problems of a pod cache configuration while it is parsed.
type reader struct {
	prefix   string
	seen     map[string]int // line of the first entry for an image, by image key
	entries  []Entry
	warnings []string
	problems []error
}

// readMap parses the short format of the file, a map from image to time to live.
func (r *reader) readMap(root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], resolveAlias(root.Content[i+1])
		e := entry{where: fmt.Sprintf("line %d: %q", name.Line, name.Value)}
		e.setDuration(&e.TTL, "the time to live", value)
		r.addEntry(&e, name)
	}
}

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
			r.problems = append(r.problems, fmt.Errorf("%s has no name: it must be the function's image", e.where))
			continue
		}
		r.addEntry(&e, resolveAlias(name))
	}
}

// addEntry adds an entry to the result. If the image already has an entry, it adds only a warning.
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

const nullTag = "!!null"

// resolveAlias returns the target of a YAML alias. It returns all other nodes unchanged.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
