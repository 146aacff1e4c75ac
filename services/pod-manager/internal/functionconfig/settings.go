// SPDX-License-Identifier: Apache-2.0

package functionconfig

import (
	"maps"
	"math"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

// settings contains the values in the annotation [SettingsAnnotation], and the names of the Secrets that pods must
// not use.
type settings struct {
	entry   cacheconfig.Entry
	minPods int
	prefork *int
	secrets []string // names of Secrets that an object must not pass to its pods
}

// maxSettings is the maximum size of the annotation [SettingsAnnotation] in bytes. This is several times the size
// of an annotation with all settings.
const maxSettings = 4 << 10

// readSettings parses the annotation [SettingsAnnotation]. A single problem disables all of its settings.
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
