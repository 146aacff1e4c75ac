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
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/settings"
	"github.com/krm-function-runner/function-runner/libs/typo"
)

// Setting describes an environment variable that a program reads.
type Setting struct {
	// Variable is the name of the variable, including the prefix FNR.
	Variable string
	// Alias is a second name of the variable, without the prefix FNR. It may be empty.
	Alias string
	// Type is the type of the value: text, number, bytes, duration, boolean, or a list.
	Type string
	// Meaning is the first sentence of the field's doc comment. It is empty for fields of tests.
	Meaning string
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
				Meaning: settings.Meanings[structure.String()+"."+field.Name],
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

// Types of settings. Forms describes the values of the types whose values Go's parsers read, for errors.
const (
	listType     = "list, by commas"
	durationType = "duration"
	booleanType  = "true or false"
	numberType   = "number"
)

var forms = map[string]string{
	durationType: "a duration such as 30s", booleanType: booleanType, numberType: "a whole number",
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return durationType
	case t == reflect.TypeFor[Bytes]():
		return Bytes(0).Type()
	case t.Kind() == reflect.Slice:
		return listType
	case t.Kind() == reflect.Bool:
		return booleanType
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64:
		return numberType
	}
	return "text"
}

// Help writes the settings of cfg to w, with their types, meanings and defaults.
func Help(w io.Writer, cfg any) {
	_, _ = fmt.Fprintln(w, "Environment:")
	for _, s := range Settings(cfg) {
		_, _ = fmt.Fprintf(w, "  %s %s", cmp.Or(s.Alias, s.Variable), s.Type)
		text := s.Meaning
		if s.Default != "" {
			text += " (default " + s.Default + ")"
		}
		writeWrapped(w, text)
	}
	_, _ = fmt.Fprintln(w, "\ndocs/configuration.md says more.")
}

// helpWidth is the maximum number of columns of help, except for words that are longer.
const helpWidth = 100

// writeWrapped ends the current line of help, and writes text in indented lines of at most helpWidth columns.
func writeWrapped(w io.Writer, text string) {
	const indent = "\n     "
	column := helpWidth
	for word := range strings.FieldsSeq(text) {
		if column+len(word) >= helpWidth {
			_, _ = io.WriteString(w, indent)
			column = len(indent) - 1
		}
		_, _ = io.WriteString(w, " "+word)
		column += 1 + len(word)
	}
	_, _ = fmt.Fprintln(w)
}

// foreign contains variables with the prefix FNR that only our tests read. Programs must not reject these variables,
// because tests start programs with the variables in the environment.
var foreign = []string{
	"FNR_BED", "FNR_COLLECTOR", "FNR_EVIDENCE", "FNR_KPT", "FNR_KUSTOMIZE", "FNR_PORCH", "FNR_SKAFFOLD",
	"FNR_TOOLBOX_IMAGE",
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

// guesses maps names that users of similar programs are likely to guess to the settings with the same meaning.
var guesses = map[string]string{
	"FNR_EVALUATION_TIMEOUT":    "FNR_MAX_EVALUATION_TIME",
	"FNR_FUNCTIONS":             "FNR_EXEC_FUNCTIONS",
	"FNR_LISTEN_ADDRESS":        "FNR_ADDRESS",
	"FNR_LOG_FORMAT":            "FNR_TELEMETRY_LOG_FORMAT",
	"FNR_LOG_LEVEL":             "FNR_TELEMETRY_LOG_VERBOSITY",
	"FNR_LOG_VERBOSITY":         "FNR_TELEMETRY_LOG_VERBOSITY",
	"FNR_MAX_REQUEST_BODY_SIZE": "FNR_MAX_MESSAGE_BYTES",
	"FNR_MAX_REQUEST_SIZE":      "FNR_MAX_MESSAGE_BYTES",
	"FNR_METRICS_ADDRESS":       "FNR_TELEMETRY_METRICS_ADDRESS",
	"FNR_METRICS_PORT":          "FNR_TELEMETRY_METRICS_ADDRESS",
	"FNR_POD_NAMESPACE":         "FNR_NAMESPACE",
	"FNR_POD_TTL":               "FNR_TTL",
	"FNR_PORT":                  "FNR_ADDRESS",
	"FNR_REGISTRY":              "FNR_DEFAULT_IMAGE_PREFIX",
	"FNR_TIMEOUT":               "FNR_MAX_EVALUATION_TIME",
	"FNR_TLS":                   "FNR_TLS_DIRECTORY",
}

// adviceFor suggests the known variable that users mean by a likely guess, or else the known variable with the most
// similar name. If there is none, it suggests removing the unknown variable.
func adviceFor(name string, known []string) string {
	meant := guesses[name]
	if !slices.Contains(known, meant) {
		meant = typo.Nearest(name, known, min(maxTypingErrors, (len(name)-len(Prefix+"_"))/2))
	}
	if meant != "" {
		return fmt.Sprintf(": is %s meant?", meant)
	}
	return ": remove it (docs/configuration.md lists the settings of each program)"
}

// maxTypingErrors is the maximum number of wrong letters in a misspelt variable, and at most half of a short name. A
// larger number would suggest settings with another meaning.
const maxTypingErrors = 3
