// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups lists the groups of flags in the help, each with its title. A name that ends with a dash, such as
// "match-", selects all flags with this prefix. The help lists flags without a group first.
var flagGroups = []struct {
	title string
	names []string
}{
	{"Selecting resources", []string{"match-", "exclude-"}},
	{"Output", []string{
		"output", "diff", "dry-run", "no-status", "check", "explain", "results-", "no-color", "phases", "trace",
	}},
	{"Where functions run", []string{
		"address", "namespace", "context", "kubeconfig", "timeout", "max-message-size", "local", "offline", "cache",
		"image-prefix", "jobs",
	}},
}

// groupFlags makes the help of a command and its subcommands show flags in groups.
func groupFlags(root *cobra.Command) {
	cobra.AddTemplateFunc("flagGroups", describeFlags)
	const all = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), all, "{{flagGroups .LocalFlags}}", 1))
}

// describeFlags returns the help text of a command's flags, in the order of flagGroups.
func describeFlags(flags *pflag.FlagSet) string {
	groups := make([]*pflag.FlagSet, len(flagGroups)+1)
	for i := range groups {
		groups[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	flags.VisitAll(func(f *pflag.Flag) { groups[groupOf(f.Name)].AddFlag(f) })
	var parts []string
	for i, group := range groups {
		title := "Flags"
		if i > 0 {
			title = flagGroups[i-1].title
		}
		if group.HasAvailableFlags() {
			parts = append(parts, title+":\n"+strings.TrimRight(group.FlagUsages(), "\n"))
		}
	}
	return strings.Join(parts, "\n\n")
}

// groupOf returns the number of a flag's group in the help. Group 0 contains the flags that flagGroups omits.
func groupOf(flag string) int {
	for i, group := range flagGroups {
		for _, name := range group.names {
			if flag == name || (strings.HasSuffix(name, "-") && strings.HasPrefix(flag, name)) {
				return i + 1
			}
		}
	}
	return 0
}
