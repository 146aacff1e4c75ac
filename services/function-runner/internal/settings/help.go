// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"flag"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// help writes all flags, and the variables that have an effect here. A flag is named instead of its
// variable.
func help(flags *flag.FlagSet) {
	w := flags.Output()
	_, _ = fmt.Fprintf(w, "usage: function-runner [FLAG]...\n\nFlags:\n")
	flags.PrintDefaults()
	_, _ = fmt.Fprintln(w)
	hidden := map[string]bool{}
	for _, f := range new(Settings).flags() {
		hidden[config.Variable(f.field)] = true
	}
	config.Help(w, new(Settings), func(variable string) bool { return hidden[variable] })
}
