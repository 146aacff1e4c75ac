// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

const functionsHelp = `Functions lists the images that the gateway runs as local binaries, by its configuration or by
FunctionConfigs, and the images that have function pods or are listed for them. A gateway with function pods runs other
images too.`

func newFunctions(env command.Environment) *cobra.Command {
	var flags backend.Flags
	cmd := &cobra.Command{
		Use:   "functions",
		Short: "List the functions that the gateway serves",
		Long:  functionsHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			gateway, err := flags.NewClient(env)
			if err != nil {
				return err
			}
			defer gateway.Close()
			images, err := gateway.Images(cmd.Context())
			for _, image := range images {
				env.OutPrinter().Line("%s", ui.OneLine(image))
			}
			return err
		},
	}
	flags.RegisterAddress(cmd.Flags(), env)
	return cmd
}
