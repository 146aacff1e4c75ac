// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/complete"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

const docHelp = `Doc shows the help that a function has about itself: what it prints if it is called with
--help. A function runner elsewhere cannot ask for it, so the image runs on your machine: with --local in a sandbox,
otherwise by docker, podman or nerdctl (KPT_FN_RUNTIME). --exec asks a program of your machine.`

const docExamples = `  fnctl doc --image set-namespace:v0.4.5 --local
  fnctl doc --exec "go run ./my-function"`

type docCommand struct {
	env            command.Environment
	image, program string
	prefix         string
	gateway        backend.Flags
}

func newDoc(env command.Environment) *cobra.Command {
	c := &docCommand{env: env, gateway: backend.Flags{
		Arguments: []string{"--help"}, Phases: command.IsTerminal(env.Stderr),
	}}
	cmd := &cobra.Command{
		Use:     "doc --image IMAGE",
		Short:   "Show the help of a function",
		Long:    docHelp,
		Example: docExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(cmd.Flags()); err != nil {
				return command.UsageError(cmd, err)
			}
			return c.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&c.image, "image", "i", "", "the function's image")
	cmd.Flags().StringVar(&c.program, "exec", "", "the function's program, instead of an image")
	command.RegisterImagePrefix(cmd.Flags(), env, &c.prefix)
	c.gateway.RegisterLocal(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("image", complete.Images)
	return cmd
}

func (c *docCommand) check(flags *pflag.FlagSet) error {
	c.program = strings.TrimSpace(c.program)
	c.gateway.Containers = local.Dockers
	if runtime := backend.ContainerRuntime(c.env); runtime != "" {
		c.gateway.Containers = []string{runtime}
	}
	switch {
	case (c.image == "") == (c.program == ""):
		return errors.New("needs --image or --exec")
	case c.program == "" && !c.gateway.Local && !slices.Contains(local.Dockers, c.gateway.Containers[0]):
		return fmt.Errorf("takes %s for KPT_FN_RUNTIME, got %q", strings.Join(local.Dockers, ", "), c.gateway.Containers[0])
	}
	return c.gateway.Check(flags)
}

func (c *docCommand) run(ctx context.Context) (err error) {
	if c.program != "" {
		c.env.ImageProgram = c.program + " --help"
	}
	evaluator, err := c.gateway.Open(ctx, c.env, c.env.Progress())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, evaluator.Close()) }()
	req := pipeline.Request{
		Image: pipeline.Options{ImagePrefix: c.prefix}.FullName(c.image), Exec: c.env.ImageProgram,
		ResourceList: backend.NoInput,
	}
	name := cmp.Or(req.Exec, req.Image)
	req.Waiting = func(what string) { c.env.ReplaceLine(name + ": " + what) }
	ctx, cancel := context.WithTimeout(ctx, backend.DefaultTimeout) // a function that ignores --help may wait forever
	defer cancel()
	resp, err := evaluator.Evaluate(ctx, req)
	c.env.ReplaceLine("")
	if failed, ok := errors.AsType[*pipeline.FunctionError](err); ok {
		call := pipeline.Call{Function: kptfile.Function{Image: req.Image, Exec: req.Exec}}
		c.env.Progress().Finished(call, pipeline.Outcome{Err: err, Results: failed.Results})
		return command.WithCode(exitCode(err), errors.New(name+" failed instead of showing its help"))
	}
	if err != nil {
		return err
	}
	return c.show(ctx, name, resp)
}

// show prints the help text from a function's standard output. As in kpt, the text ends with a newline. With --local,
// show prints standard error if standard output is empty. Without --local, show ignores standard error, because it may
// contain the progress of a download.
func (c *docCommand) show(ctx context.Context, name string, resp pipeline.Response) error {
	help := string(resp.ResourceList)
	if c.gateway.Local {
		help = cmp.Or(help, string(resp.Log))
	}
	if _, err := resourcelist.Parse(ctx, resp.ResourceList); err == nil || strings.TrimSpace(help) == "" {
		return command.WithCode(command.ExitFunction, errors.New(name+" has no help: it does not know --help"))
	}
	c.env.OutPrinter().Line("%s", ui.Printable(help))
	return nil
}
