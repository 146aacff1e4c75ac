// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/complete"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

const evalHelp = `Eval runs one function on all resources of a directory, packages inside it
included, on those of one file, or on those of standard input if the argument is '-'. Without
an argument it takes the current directory. A ResourceList on standard input comes back as one,
anything else as YAML documents, unless --output says other.
The function's configuration comes from a file, or from arguments after '--': key=value pairs,
which become a ConfigMap, or another kind if that is the first argument.`

const evalExamples = `  # Set the namespace of everything below ./web
  fnctl eval ./web --image set-namespace:v0.4.5 -- namespace=shop
  # Do so for Deployments only, and have 'render' do it from now on
  fnctl eval ./web --image set-namespace:v0.4.5 --match-kind Deployment --save --type mutator -- namespace=shop
  # Use a function as a filter
  cat deployment.yaml | fnctl eval - --image starlark:v0.5.5 --fn-config check.yaml
  # Try a function that you are writing
  fnctl eval ./web --exec "go run ./my-function" --diff --dry-run`

type evalCommand struct {
	env      command.Environment
	gateway  backend.Flags
	output   outputFlags
	results  resultsFlags
	kpt      kptFlags
	prefix   string
	function oneFunction
}

func newEval(env command.Environment) *cobra.Command {
	c := &evalCommand{env: env}
	cmd := &cobra.Command{
		Use:               "eval [DIR|FILE|-] --image IMAGE [-- [KIND] KEY=VALUE...]",
		Short:             "Run one function",
		Long:              evalHelp,
		Example:           evalExamples,
		Args:              command.OneTarget("DIR, FILE, or - for standard input; arguments of the function go behind --"),
		ValidArgsFunction: complete.Packages,
		RunE:              c.parseAndRun,
	}
	c.register(cmd)
	return cmd
}

func (c *evalCommand) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	c.function.register(cmd)
	c.gateway.Register(flags, c.env)
	command.RegisterImagePrefix(flags, c.env, &c.prefix)
	c.output.register(flags)
	c.results.register(flags)
	c.kpt.register(flags, "image-pull-policy", "network", "as-current-user")
	c.kpt.reject(flags, "allow-alpha-wasm", "a function runner runs images, not WebAssembly")
	c.kpt.rejectValue(flags, "mount",
		"a function runner cannot mount directories of this machine; put the files into a ConfigMap")
	c.kpt.reject(flags, "include-meta-resources", errMetaResources.Error())
}

// parseAndRun parses the command line of fnctl eval and runs the function. Arguments after "--" are its configuration.
func (c *evalCommand) parseAndRun(cmd *cobra.Command, args []string) error {
	where, pairs := command.TargetArgument(cmd, args), []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		pairs = args[dash:]
	}
	config, err := c.prepare(where, pairs)
	if err = errors.Join(err, c.gateway.Check(cmd.Flags())); err != nil {
		return command.UsageError(cmd, err)
	}
	c.kpt.reportIgnored(c.env, cmd.Flags())
	return c.run(cmd.Context(), where, config)
}

// prepare checks the command line and returns the function's configuration, or nil if the user gave none.
func (c *evalCommand) prepare(where string, pairs []string) (*yaml.RNode, error) {
	if err := errors.Join(c.kpt.check(), c.function.check(where, pairs, c.gateway.Local)); err != nil {
		return nil, err
	}
	if where == "-" && (c.output.diff || c.output.dryRun || (c.output.target != "" && !c.output.isStream())) {
		return nil, errors.New("writes what it reads from standard input to standard output: leave out --diff and " +
			"--dry-run, and a directory for --output")
	}
	if err := c.output.check(); err != nil {
		return nil, err
	}
	if err := c.results.prepare(); err != nil {
		return nil, err
	}
	return c.function.config(where, pairs)
}

func (c *evalCommand) run(ctx context.Context, where string, config *yaml.RNode) (err error) {
	progress := c.env.Progress()
	c.gateway.Environment = c.function.environment
	evaluator, err := c.gateway.Open(ctx, c.env, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, evaluator.Close()) }()
	renderer := &pipeline.Renderer{Evaluator: evaluator, Observer: progress, Timeout: c.gateway.Timeout}
	if where == "-" {
		return c.runOnInput(ctx, renderer, config)
	}
	return c.runOnFiles(ctx, renderer, where, config)
}
