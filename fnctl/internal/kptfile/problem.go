// SPDX-License-Identifier: Apache-2.0

package kptfile

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/libs/typo"
)

// Regular expressions for errors of the YAML library, which fnctl replaces by its own texts. The library's errors
// contain names of our Go types. If a value has a wrong type, the error also contains this value, which may be secret.
var (
	unknownField = regexp.MustCompile(`^line (\d+): field (.*) not found in type (.+)$`)
	wrongType    = regexp.MustCompile(`^line (\d+): cannot unmarshal !!(\w+)(?s:.*) into (.+)$`)
	duplicate    = regexp.MustCompile(`^line (\d+): mapping key (".*") already defined at line (\d+)$`)
	syntax       = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
)

// yamlProblem translates an error of the YAML library about a Kptfile to a text for users, with the line and the
// problem. It omits names of Go types. It also omits all values of the file, because they may be secret.
func yamlProblem(file string, err error) error {
	if types, ok := errors.AsType[*yaml.TypeError](err); ok {
		return fmt.Errorf("%s:%s", file, typeProblem(types.Errors[0]))
	}
	if found := syntax.FindStringSubmatch(err.Error()); found != nil {
		if strings.HasPrefix(found[2], "unknown anchor") {
			found[2] = "an alias names no anchor before it"
		}
		return fmt.Errorf("%s:%s: %s", file, max(found[1], "1"), found[2])
	}
	return fmt.Errorf("%s is not a Kptfile", file)
}

func typeProblem(text string) string {
	if found := unknownField.FindStringSubmatch(text); found != nil {
		hint := ""
		if slices.Contains(unreleased, found[2]) {
			hint = ": it was proposed for kpt, and no release has it"
		} else if near := nearestName(found[2], fieldsOf(found[3])); near != "" {
			hint = fmt.Sprintf(" (do you mean %s?)", near)
		}
		return fmt.Sprintf("%s: a Kptfile has no field %s here%s", found[1], found[2], hint)
	}
	if found := wrongType.FindStringSubmatch(text); found != nil {
		return fmt.Sprintf("%s: %s is not possible here, it must be %s", found[1], yamlKinds[found[2]], kindOf(found[3]))
	}
	if found := duplicate.FindStringSubmatch(text); found != nil {
		return fmt.Sprintf("%s: the field %s is there twice, first in line %s", found[1], found[2], found[3])
	}
	return " it is not a Kptfile"
}

// unreleased lists fields that kpt's documents mention but no release of kpt supports. fnctl's error explains this.
var unreleased = []string{"when", "condition", "configRef", "resourceFileRegexp"}

// yamlKinds translates types of YAML values to words for users, in error texts.
var yamlKinds = map[string]string{
	"str": "text", "int": "a number", "float": "a number", "bool": "true or false", "seq": "a list", "map": "a map",
	"null": "nothing", "timestamp": "a date", "binary": "binary data",
}

// kindOf translates a Go type to words for users, such as "a list".
func kindOf(name string) string {
	switch {
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case name == "string":
		return "text"
	}
	return "a map"
}

// fieldsOf returns the YAML fields of the Go type with this name. They are suggestions for a misspelled field.
func fieldsOf(name string) []string {
	var names []string
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			field, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			if t.String() == name && field != "" {
				names = append(names, field)
			}
			visit(t.Field(i).Type)
		}
	}
	visit(reflect.TypeFor[document]())
	return names
}

// nearestName returns the name most similar to a misspelled field. It is empty if no name is similar.
func nearestName(wrong string, names []string) string {
	const maxEdits = 2
	return typo.Nearest(wrong, slices.Sorted(slices.Values(names)), maxEdits)
}
