// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"flag"
	"fmt"
	"io"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// printHelp prints all flags and all environment variables to w. A flag of Porch may set only a part of a variable's
// setting: --port sets no host. Documents and messages also name settings by their variable.
func printHelp(w io.Writer, flags *flag.FlagSet) {
	_, _ = fmt.Fprint(w, "usage: function-runner [FLAG]...\n\nFlags, which take precedence over variables:\n")
	flags.SetOutput(w)
	flags.PrintDefaults()
	_, _ = fmt.Fprintln(w)
	config.Help(w, new(Settings))
}
