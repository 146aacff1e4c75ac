// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/google/shlex"
	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

const docHelp = `Doc shows the help that a function has about itself: what it prints if it is called with
--help. A function runner cannot ask for it, so the image is run on your machine, by docker,
podman or nerdctl (KPT_FN_RUNTIME); --exec asks a program of your machine.`

const docExamples = `  fnctl doc --image set-namespace:v0.4.5
  fnctl doc --exec "go run ./my-function"`

// containerRuntimes lists the container runtimes that kpt supports.
var containerRuntimes = []string{"docker", "podman", "nerdctl"}

func newDoc(env Environment) *cobra.Command {
	var image, program string
	var functions functionFlags
	cmd := &cobra.Command{
		Use:     "doc --image IMAGE",
		Short:   "Show the help of a function",
		Long:    docHelp,
		Example: docExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			command, err := docCommand(env, image, program, functions.prefix)
			if err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return showDoc(cmd.Context(), env, command)
		},
	}
	cmd.Flags().StringVarP(&image, "image", "i", "", "the function's image")
	cmd.Flags().StringVar(&program, "exec", "", "the function's program, instead of an image")
	functions.register(cmd.Flags(), env)
	_ = cmd.RegisterFlagCompletionFunc("image", completeImages)
	return cmd
}

// docCommand returns the command line that prints the help of a function: of an image, or of a program.
func docCommand(env Environment, image, program, prefix string) ([]string, error) {
	runtime := cmp.Or(strings.ToLower(env.ContainerRuntime), containerRuntimes[0])
	switch {
	case (image == "") == (program == ""):
		return nil, errors.New("needs --image or --exec")
	case program != "":
		command, err := shlex.Split(program)
		if err != nil || len(command) == 0 {
			return nil, fmt.Errorf("cannot run --exec %q: it is not a command", program)
		}
		return append(command, "--help"), nil
	case !slices.Contains(containerRuntimes, runtime):
		return nil, fmt.Errorf("takes %s for KPT_FN_RUNTIME, got %q", strings.Join(containerRuntimes, ", "), runtime)
	}
	image = pipeline.Options{ImagePrefix: prefix}.FullName(image)
	return []string{runtime, "run", "--rm", kptfile.ImageName(image, ""), "--help"}, nil
}

func showDoc(ctx context.Context, env Environment, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var out, log bytes.Buffer
	cmd.Env = env.Environ
	cmd.Stdout = &out
	cmd.Stderr = &log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(log.String()))
	}
	env.outPrinter().Line("%s", ui.Printable(out.String()))
	return nil
}
