// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"flag"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// printHelp prints all flags, and then the environment variables that have no flag.
func printHelp(flags *flag.FlagSet) {
	w := flags.Output()
	_, _ = fmt.Fprintf(w, "usage: function-runner [FLAG]...\n\nFlags:\n")
	flags.PrintDefaults()
	_, _ = fmt.Fprintln(w)
	hidden := map[string]bool{}
	for _, f := range new(Settings).porchFlags() {
		hidden[config.Variable(f.field)] = true
	}
	config.Help(w, new(Settings), func(variable string) bool { return hidden[variable] })
}
