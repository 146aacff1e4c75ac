// SPDX-License-Identifier: Apache-2.0

package cacheconfig

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// entry is an entry that is being read.
type entry struct {
	Entry
	where    string // names it, for users
	warnings []string
	problems []error
}

func (e *entry) problem(format string, args ...any) {
	e.problems = append(e.problems, fmt.Errorf("%s: "+format, append([]any{e.where}, args...)...))
}

func (e *entry) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf("%s: "+format, append([]any{e.where}, args...)...))
}

// object reads the fields of an object, and returns its name; nil if it has none.
func (e *entry) object(item *yaml.Node) *yaml.Node {
	fields := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(item.Content); i += 2 {
		field := item.Content[i].Value
		if _, ok := fields[field]; ok {
			e.warn("%s is there twice: the second one is ignored", field)
			continue
		}
		fields[field] = followed(item.Content[i+1])
	}
	name := fields["name"]
	if name != nil {
		e.where += fmt.Sprintf(" (%q)", name.Value)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		e.field(field, fields[field])
	}
	return name
}

// field reads one field.
func (e *entry) field(field string, value *yaml.Node) {
	switch field {
	case "name":
	case "timeToLive":
		e.duration(&e.TTL, field, value)
	case "podReadyTimeout":
		e.duration(&e.ReadyTimeout, field, value)
	case "maxEvaluationTime":
		e.duration(&e.MaxEvaluationTime, field, value)
	case "maxWaitlistLength":
		e.number(&e.MaxWaitlistLength, field, value)
	case "maxParallelPodsPerFunction":
		e.number(&e.MaxPods, field, value)
	case "maxConcurrency":
		e.number(&e.MaxConcurrency, field, value)
	case "maxQueue":
		e.number(&e.MaxQueue, field, value)
	case "minPods":
		e.MinPods = e.count(field, value, "none", maxMinPods)
	case "prefork":
		e.Prefork = e.count(field, value, "off", function.MaxPrefork)
	case "resources":
		e.resources(value)
	default:
		e.warn("field %q is not known, and ignored", field)
	}
}

// duration reads a time such as 30m.
func (e *entry) duration(to *time.Duration, field string, value *yaml.Node) {
	if value.Tag == nullTag {
		return
	}
	d, err := time.ParseDuration(value.Value)
	if err != nil || d <= 0 {
		e.problem("%s is %q: it has to be a time of more than zero with its unit, such as 30m", field, value.Value)
		return
	}
	*to = d
}

// number reads a count. Zero means the default, as a missing field does.
func (e *entry) number(to *int, field string, value *yaml.Node) {
	if value.Tag == nullTag {
		return
	}
	n, err := strconv.ParseUint(value.Value, 10, 31)
	if err != nil {
		e.problem("%s is %q: it has to be a whole number from 0 to %d", field, value.Value, math.MaxInt32)
		return
	}
	*to = int(n)
}

// maxMinPods bounds how many pods one function may keep: each costs its resources at all times.
const maxMinPods = 1000

// count reads a number up to most of which zero is a value: none.
func (e *entry) count(field string, value *yaml.Node, none string, most int) *int {
	if value.Tag == nullTag {
		return nil
	}
	n, err := strconv.Atoi(value.Value)
	if err != nil || n < 0 || n > most {
		e.problem("%s is %q: it has to be a whole number from 0 (%s) to %d", field, value.Value, none, most)
		return nil
	}
	return &n
}
