// SPDX-License-Identifier: Apache-2.0

package kptfile

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
)

// FieldError reports an invalid field of a Kptfile.
type FieldError struct {
	// File is the Kptfile's path. It is empty for a function that is not from a Kptfile.
	File string
	// Field is the field's path, such as "pipeline.mutators[0].image".
	Field string
	// Value is the value in the file. It is empty if the field as a whole is wrong.
	Value string
	// Reason follows the field and the value in the error text. An example is "must name a file".
	Reason string
}

func (e *FieldError) Error() string {
	text := e.Field + " " + e.Reason
	if e.Value != "" {
		text = fmt.Sprintf("%s %q %s", e.Field, e.Value, e.Reason)
	}
	if e.File != "" {
		return e.File + ": " + text
	}
	return text
}

func checkPipeline(file string, p Pipeline) error {
	return cmp.Or(checkFunctions(file, Mutators, p.Mutators), checkFunctions(file, Validators, p.Validators))
}

func checkFunctions(file, list string, functions []Function) error {
	for i, f := range functions {
		if err := checkFunction(file, fmt.Sprintf("pipeline.%s[%d]", list, i), f); err != nil {
			return err
		}
	}
	return nil
}

func checkFunction(file, field string, f Function) error {
	switch {
	case f.Image == "" && f.Exec == "":
		return &FieldError{file, field, "", "must name a function: set image"}
	case f.Image != "" && f.Exec != "":
		return &FieldError{file, field, "", "must have image or exec, not both"}
	}
	if f.Image != "" {
		if _, err := reference.ParseNormalizedNamed(f.Image); err != nil {
			return &FieldError{file, field + ".image", f.Image, "is not an image name: " + err.Error()}
		}
	}
	return checkConfig(file, field, f)
}

func checkConfig(file, field string, f Function) error {
	_, nameless := f.ConfigMap[""]
	switch {
	case len(f.ConfigMap) > 0 && f.ConfigPath != "":
		return &FieldError{file, field, "", "must have configMap or configPath, not both"}
	case nameless:
		return &FieldError{file, field + ".configMap", "", "has an entry without a key"}
	case f.ConfigPath != "":
		return checkConfigPath(file, field+".configPath", f.ConfigPath)
	}
	return nil
}

// checkConfigPath rejects paths outside of the package, because untrusted packages must not read other files.
func checkConfigPath(file, field, p string) error {
	switch {
	case strings.TrimSpace(p) == "" || path.Clean(p) == ".":
		return &FieldError{file, field, p, "must name a file"}
	case !filepath.IsLocal(filepath.FromSlash(p)):
		return &FieldError{file, field, p, "must be a path inside the package"}
	}
	return nil
}
