// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/typo"
)

// foreign contains variables with our prefix that only the project's tests read. Programs ignore them, because tests
// start programs with these variables in the environment.
var foreign = []string{
	"FNR_BED", "FNR_EVIDENCE", "FNR_KPT", "FNR_KUSTOMIZE", "FNR_PORCH", "FNR_SKAFFOLD", "FNR_TOOLBOX_IMAGE",
}

// checkUnknown returns an error that names each variable with our prefix but without a setting in cfg. Such a
// variable would have no effect. It is most often a typing error, or meant for another program.
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

// adviceFor returns the remedy for an unknown variable: the known variable with a similar name, if there is one.
func adviceFor(name string, known []string) string {
	if near := typo.Nearest(name, known, maxTypingErrors); near != "" {
		return fmt.Sprintf(": is %s meant?", near)
	}
	return ": remove it, or see --help"
}

// maxTypingErrors is the maximum number of wrong letters in a misspelt variable. A larger number would suggest settings
// with another meaning.
const maxTypingErrors = 3
