// SPDX-License-Identifier: Apache-2.0

package functionconfig

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// object is a JSON object in a FunctionConfig. Its methods read fields. They add a problem for each invalid value, and
// treat null as a missing field.
type object struct {
	path     string // path from the root of the FunctionConfig, for error texts
	fields   map[string]any
	problems *problems
}

// addInvalid adds the problem that a field's value is invalid. The argument wanted describes valid values to users.
func (o object) addInvalid(field string, value any, wanted string) {
	o.problems.add("%s is %s: it must be %s", o.pathOf(field), formatValue(value), wanted)
}

func (o object) pathOf(field string) string {
	if o.path == "" {
		return field
	}
	return o.path + "." + field
}

// maxShown is the maximum size, in bytes, of an invalid value in an error text.
const maxShown = 64

func formatValue(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("a %T", value)
	}
	return excerpt.Middle(string(text), maxShown)
}

func (o object) has(field string) bool { return o.fields[field] != nil }

// text returns the string in a field. It is empty if the field is missing or is no string.
func (o object) text(field string) string {
	if !o.has(field) {
		return ""
	}
	text, ok := o.fields[field].(string)
	if !ok {
		o.addInvalid(field, o.fields[field], "a text")
	}
	return text
}

// texts returns the strings in a list field. A list is invalid if it contains more strings than the maximum.
func (o object) texts(field string, most int) []string {
	if !o.has(field) {
		return nil
	}
	list, ok := o.fields[field].([]any)
	if !ok {
		o.addInvalid(field, o.fields[field], "a list of texts")
		return nil
	}
	if len(list) > most {
		o.problems.add("%s has %d entries: it may have up to %d", o.pathOf(field), len(list), most)
		return nil
	}
	texts := make([]string, 0, len(list))
	for i, item := range list {
		text, ok := item.(string)
		if !ok {
			o.addInvalid(fmt.Sprintf("%s[%d]", field, i), item, "a text, in quotes if it looks like a number")
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// number returns the whole number in a field. It returns nil if the number is missing, invalid or above the maximum.
func (o object) number(field string, most int) *int {
	if !o.has(field) {
		return nil
	}
	n := float64(-1)
	switch v := o.fields[field].(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	}
	if n < 0 || n > float64(most) || n != math.Trunc(n) {
		o.addInvalid(field, o.fields[field], fmt.Sprintf("a whole number from 0 to %d", most))
		return nil
	}
	whole := int(n)
	return &whole
}

// count returns the whole number in a field, or zero (the default) if the field is missing or invalid.
func (o object) count(field string) int {
	if n := o.number(field, math.MaxInt32); n != nil {
		return *n
	}
	return 0
}

// duration returns the duration in a field. It is zero if the duration is missing, invalid or below the minimum.
func (o object) duration(field string, least time.Duration) time.Duration {
	if !o.has(field) {
		return 0
	}
	text, _ := o.fields[field].(string)
	d, err := time.ParseDuration(text)
	if err != nil || d < least {
		o.addInvalid(field, o.fields[field], fmt.Sprintf("a time of %v or more with its unit, such as 30m", least))
		return 0
	}
	return d
}

// object returns the JSON object in a field, or an object without fields if the field is missing or invalid.
func (o object) object(field string) object {
	inner := object{path: o.pathOf(field), problems: o.problems}
	if !o.has(field) {
		return inner
	}
	fields, ok := o.fields[field].(map[string]any)
	if !ok {
		o.addInvalid(field, o.fields[field], "an object")
	}
	inner.fields = fields
	return inner
}

// decode decodes a field into a Kubernetes type, and reports whether the field was present and valid. Unknown fields
// are invalid, because they would have no effect.
func (o object) decode(field string, target any, wanted string) bool {
	if !o.has(field) {
		return false
	}
	unknown, err := podspec.Convert(o.fields[field], target)
	if err != nil {
		o.problems.add("%s must be %s: %v", o.pathOf(field), wanted, err)
		return false
	}
	for _, problem := range unknown {
		o.problems.add("%s: %v", o.pathOf(field), problem)
	}
	return len(unknown) == 0
}
