// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"maps"
	"slices"
	"strings"
)

// span is a span as the toolbox's collector prints it.
type span struct{ trace, id, parent, service, name string }

// trace is a trace in which every span has its parent, except for one. The parent of that is the caller's span, "-"
// if there is none.
type trace struct {
	caller   string
	services []string
	spans    map[string]span
}

// has reports whether there are spans of all names.
func (t trace) has(names ...string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(slices.Collect(maps.Values(t.spans)), func(s span) bool { return s.name == name }) {
			return false
		}
	}
	return true
}

// under reports whether the spans of some names are children of one with the name of their parent.
func (t trace) under(parent string, names ...string) bool {
	for _, s := range t.spans {
		if slices.Contains(names, s.name) && t.spans[s.parent].name != parent {
			return false
		}
	}
	return true
}

// whole returns the traces in which every span has its parent, except for one, by their ids.
func whole(log string) map[string]trace {
	all := map[string]map[string]span{}
	for line := range strings.Lines(log) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 6)
		if len(fields) != 6 || fields[0] != "span" {
			continue
		}
		one := span{fields[1], fields[2], fields[3], fields[4], fields[5]}
		if all[one.trace] == nil {
			all[one.trace] = map[string]span{}
		}
		all[one.trace][one.id] = one
	}
	found := map[string]trace{}
	for id, spans := range all {
		services, callers := map[string]bool{}, []string{}
		for _, one := range spans {
			services[one.service] = true
			if _, known := spans[one.parent]; !known {
				callers = append(callers, one.parent)
			}
		}
		if len(callers) == 1 {
			found[id] = trace{callers[0], slices.Sorted(maps.Keys(services)), spans}
		}
	}
	return found
}
