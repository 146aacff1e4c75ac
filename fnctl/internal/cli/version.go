// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/libs/version"
)

func newVersion(env Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of fnctl",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { env.outPrinter().Line("fnctl version %s", version.String()) },
	}
}
