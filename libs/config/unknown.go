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

// foreign contains variables with the prefix FNR that only the project's tests read. Tests start programs with
// these variables in the environment, so programs must not reject them.
var foreign = []string{
	"FNR_BED", "FNR_EVIDENCE", "FNR_KPT", "FNR_KUSTOMIZE", "FNR_PORCH", "FNR_SKAFFOLD", "FNR_TOOLBOX_IMAGE",
}

// checkUnknown returns an error that names each variable that has the prefix FNR but belongs to no setting in cfg.
// Such a variable would have no effect. It is most often a typing error, or meant for another program.
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

// adviceFor returns advice about an unknown variable: the known variable with the most similar name. It is empty if
// no name is similar.
func adviceFor(name string, known []string) string {
	if near := typo.Nearest(name, known, maxTypingErrors); near != "" {
		return fmt.Sprintf(": is %s meant?", near)
	}
	return ": remove it, or see --help"
}

// maxTypingErrors is the maximum number of wrong letters in a misspelt variable. A larger number would suggest settings
// with another meaning.
const maxTypingErrors = 3
