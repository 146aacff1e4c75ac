// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// JSON is the value of --output for output in JSON.
const JSON = "json"

// TargetArgument returns the directory or file to process, from the argument before "--". The default is ".".
func TargetArgument(cmd *cobra.Command, args []string) string {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return "."
	}
	return args[0]
}

// OneTarget returns a check that permits one argument before "--". The parameter what describes the argument in the
// error, such as "DIR, a package".
func OneTarget(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		if len(args) > 1 {
			return UsageError(cmd, errors.New("takes one argument: "+what))
		}
		return nil
	}
}

// CheckChoice returns an error unless the value of a flag is empty or one of the choices.
func CheckChoice(flag, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("takes %s for %s, got %q", strings.Join(choices, " or "), flag, value)
}

// RegisterImagePrefix adds the flag --image-prefix, whose value is stored in prefix.
func RegisterImagePrefix(flags *pflag.FlagSet, env Environment, prefix *string) {
	flags.StringVar(prefix, "image-prefix", env.LookUp("KPT_IMAGE_PREFIX"),
		"put this before images without a slash; by default KPT_IMAGE_PREFIX, or else the gateway's own")
}
