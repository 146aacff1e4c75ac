// SPDX-License-Identifier: Apache-2.0

// Package config loads the settings of a program from the environment or from flags into a struct with defaults. It
// validates the settings before anything starts.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// Prefix begins the name of every environment variable of this project. It is not "FUNCTION_RUNNER", because
// Kubernetes injects variables with that prefix into pods if a Service is called function-runner.
const Prefix = "FNR"

// Validator is a configuration that can validate itself. Validate returns a single error with all problems, or nil,
// as [Checks.Err] does.
type Validator interface {
	Validate() error
}

// Load fills cfg from environment variables and validates it. Cfg is a pointer to a struct with envconfig tags.
// Errors name the variable, its value and the permitted values.
func Load(cfg Validator) error {
	if err := Fill(cfg); err != nil {
		return err
	}
	return Rename(cfg.Validate(), Variable)
}

// Fill sets the fields of cfg from environment variables without validating them. It is for programs whose flags
// override the environment. A variable with the prefix FNR and without a matching field is an error, because it
// would have no effect and is most often a typing error.
func Fill(cfg any) error {
	if err := envconfig.Process(Prefix, cfg); err != nil {
		return describeError(cfg, err)
	}
	cleanLists(reflect.ValueOf(cfg).Elem())
	if err := checkLists(cfg); err != nil {
		return err
	}
	return checkUnknown(cfg)
}

// checkLists returns an error if a list setting is not empty but contains no items, such as ",". Without this check,
// the setting would act as an empty list, which may permit everything.
func checkLists(cfg any) error {
	for _, s := range Settings(cfg) {
		value := os.Getenv(s.Variable) //nolint:forbidigo // main reads the environment with this package
		if s.Type == listType && value != "" && SplitList(value) == nil {
			return fmt.Errorf("environment: %s is %q, a list without items (add an item, or unset it)", s.Variable, value)
		}
	}
	return nil
}

// cleanLists applies [SplitList] to all lists in a struct of settings, because envconfig splits only at commas.
func cleanLists(structure reflect.Value) {
	for field, value := range structure.Fields() {
		switch {
		case !field.IsExported() || field.Tag.Get("ignored") == "true":
		case isGroup(field.Type):
			cleanLists(value)
		default:
			if list, ok := value.Addr().Interface().(*[]string); ok {
				*list = SplitList(strings.Join(*list, ","))
			}
		}
	}
}

// SplitList returns the items of a list that is separated by commas. It removes spaces around items and empty items,
// so that "a, b" and "a,b" are the same list.
func SplitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// IsSet reports whether the environment contains the variable of a field, even with an empty value. Programs use it
// to distinguish a setting of the user from a default.
func IsSet(field string) bool {
	_, ok := os.LookupEnv(Variable(field)) //nolint:forbidigo // main reads the environment with this package
	return ok
}

// describeError turns an error of envconfig into an error that begins with the name of the variable, and replaces the
// errors of Go's parsers by the permitted form.
func describeError(cfg any, err error) error {
	p, ok := errors.AsType[*envconfig.ParseError](err)
	if !ok {
		return fmt.Errorf("environment: %w", err)
	}
	cause := p.Err
	for _, s := range Settings(cfg) {
		if form := forms[s.Type]; s.Variable == p.KeyName && form != "" {
			cause = errors.New("it must be " + form)
		}
	}
	return fmt.Errorf("environment: %s is %q: %w", p.KeyName, p.Value, cause)
}

// Problem is the error for a setting with an invalid value.
type Problem struct {
	// Field is the path of the struct field, such as "Serve.DrainDelay".
	Field string
	// Value is the invalid value.
	Value any
	// Want describes the permitted values, as in "at least 1".
	Want string

	name string
}

// Error names the setting, its value and the permitted values.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s is %s: it must be %s", cmp.Or(p.name, p.Field), quoteValue(p.Value), p.Want)
}

// quoteValue formats the value of a setting for an error. It quotes strings, so that an empty string is visible.
func quoteValue(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(v)
}

// Rename replaces the name of the setting in each [Problem] of err by name(field). Errors then contain the name that
// users set. It is an environment variable in some programs and a flag in others.
func Rename(err error, name func(field string) string) error {
	return changeProblems(err, func(p Problem) *Problem {
		p.name = name(p.Field)
		return &p
	})
}

// changeProblems returns err with each [Problem] replaced by the result of the given function.
func changeProblems(err error, change func(Problem) *Problem) error {
	changed := splitErrors(err)
	for i, e := range changed {
		if p, ok := errors.AsType[*Problem](e); ok {
			changed[i] = change(*p)
		}
	}
	return errors.Join(changed...)
}

// splitErrors returns the errors that errors.Join combined into err, or err itself, in a new slice.
func splitErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.Clone(joined.Unwrap())
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// wordBreak matches the boundary between two words of a field's name, such as between "Drain" and "Delay".
var wordBreak = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// Variable returns the environment variable of a field: "Serve.DrainDelay" is FNR_SERVE_DRAIN_DELAY.
func Variable(field string) string {
	words := wordBreak.ReplaceAllString(field, "${1}${3}_${2}${4}")
	return Prefix + "_" + strings.ToUpper(strings.ReplaceAll(words, ".", "_"))
}

// Checks collects the problems of a configuration, so that users see all of them at once. The zero Checks is ready to
// use.
type Checks struct {
	problems []error
}

// That records a problem with a setting if ok is false. Field is the path of the setting's struct field, and want
// describes the permitted values.
func (c *Checks) That(ok bool, field string, value any, want string) {
	if !ok {
		c.problems = append(c.problems, &Problem{Field: field, Value: value, Want: want})
	}
}

// ServiceURL records a problem with a setting if its value is neither empty nor the URL of a service. Field is the
// path of the setting's struct field.
func (c *Checks) ServiceURL(field, address string) {
	u, err := url.Parse(address)
	ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	c.That(ok || address == "", field, address, "http://host:port or https://host:port")
}

// Within adds the problems in err, which the validation of a nested struct returned. It puts field, the struct's name,
// before the name of each setting. If field is empty, Within does not change the names.
func (c *Checks) Within(field string, err error) {
	err = changeProblems(err, func(p Problem) *Problem {
		if field != "" {
			p.Field = field + "." + p.Field
		}
		return &p
	})
	c.problems = append(c.problems, splitErrors(err)...)
}

// Err returns all recorded problems as a single error, or nil. A problem that several services recorded for a
// shared setting appears once.
func (c *Checks) Err() error {
	var unique []error
	for _, problem := range c.problems {
		same := func(other error) bool { return other.Error() == problem.Error() }
		if !slices.ContainsFunc(unique, same) {
			unique = append(unique, problem)
		}
	}
	return errors.Join(unique...)
}
