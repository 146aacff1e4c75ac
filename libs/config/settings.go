// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/krm-function-runner/function-runner/libs/typo"
)

// Setting describes an environment variable that a program reads.
type Setting struct {
	// Variable is the name of the variable, including the prefix FNR.
	Variable string
	// Alias is a second name of the variable, without the prefix FNR. It may be empty.
	Alias string
	// Type is the type of the value: text, number, duration, boolean, or a list.
	Type string
	// Default is the value of the setting if the variable is not set.
	Default string
}

// Settings returns the settings of cfg in the order of its fields. Cfg is a pointer to a struct with envconfig
// tags. If embedded structs share a variable, it is listed once, with the first default. We do not use envconfig's
// own list, because it requires text/template, which would make each program a third larger.
func Settings(cfg any) []Setting {
	var unique []Setting
	seen := map[string]bool{}
	for _, s := range settingsOf(reflect.TypeOf(cfg).Elem(), "") {
		if !seen[s.Variable] {
			seen[s.Variable] = true
			unique = append(unique, s)
		}
	}
	return unique
}

// settingsOf returns the settings of a struct type. Path is the struct's position in the configuration, such as
// "Serve.". It is empty for the configuration itself.
func settingsOf(structure reflect.Type, path string) []Setting {
	var found []Setting
	for field := range structure.Fields() {
		if !field.IsExported() || field.Tag.Get("ignored") == "true" {
			continue
		}
		at := path + field.Name
		switch {
		case !isGroup(field.Type):
			found = append(found, Setting{
				Variable: Variable(at), Alias: field.Tag.Get("envconfig"),
				Type: typeName(field.Type), Default: defaultOf(field),
			})
		case field.Anonymous:
			found = append(found, settingsOf(field.Type, path)...)
		default:
			found = append(found, settingsOf(field.Type, at+".")...)
		}
	}
	return found
}

// isGroup reports whether t is a nested struct of settings. Otherwise t is the type of a single setting.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func defaultOf(field reflect.StructField) string {
	if value := field.Tag.Get("default"); value != "" || field.Type.Kind() != reflect.Bool {
		return value
	}
	return "false"
}

const listType = "list, by commas"

func typeName(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "duration"
	case t.Kind() == reflect.Slice:
		return listType
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64:
		return "number"
	}
	return "text"
}

// Help writes the settings of cfg and their defaults to w. It omits the variables that satisfy the given predicate.
func Help(w io.Writer, cfg any, without func(variable string) bool) {
	_, _ = fmt.Fprintln(w, "Environment:")
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range Settings(cfg) {
		if without != nil && without(s.Variable) {
			continue
		}
		_, _ = fmt.Fprintf(columns, "  %s\t%s\t%s\n", cmp.Or(s.Alias, s.Variable), s.Type, strings.TrimSpace(s.Default))
	}
	_ = columns.Flush()
	_, _ = fmt.Fprintln(w, "\ndocs/configuration.md says what each one means.")
}

// foreign contains variables with the prefix FNR that only our tests read. Programs must not reject these variables,
// because tests start programs with the variables in the environment.
var foreign = []string{
	"FNR_BED", "FNR_EVIDENCE", "FNR_KPT", "FNR_KUSTOMIZE", "FNR_PORCH", "FNR_SKAFFOLD", "FNR_TOOLBOX_IMAGE",
}

// checkUnknown returns an error that names each environment variable that has the prefix FNR but belongs to no setting
// in cfg. Such a variable would have no effect. It is most often a typing error, or meant for another program.
func checkUnknown(cfg any) error {
	var known []string
	for _, s := range Settings(cfg) {
		known = append(known, s.Variable)
	}
	var unknown []error
	for _, entry := range os.Environ() { //nolint:forbidigo // main reads the environment with this package
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, Prefix+"_") || slices.Contains(known, name) || slices.Contains(foreign, name) {
			continue
		}
		unknown = append(unknown,
			fmt.Errorf("environment: %s is not a setting of this program%s", name, adviceFor(name, known)))
	}
	return errors.Join(unknown...)
}

// adviceFor suggests the known variable with the most similar name. If no name is similar, it suggests removing the
// unknown variable.
func adviceFor(name string, known []string) string {
	if near := typo.Nearest(name, known, maxTypingErrors); near != "" {
		return fmt.Sprintf(": is %s meant?", near)
	}
	return ": remove it, or see --help"
}

// maxTypingErrors is the maximum number of wrong letters in a misspelt variable. A larger number would suggest settings
// with another meaning.
const maxTypingErrors = 3
