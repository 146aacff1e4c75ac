// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

const evalHelp = `Eval runs one function on all resources of a directory, packages inside it
included, or on those of standard input if DIR is '-'. A ResourceList on standard
input comes back as one, anything else as YAML documents, unless --output says other.

The function's configuration comes from a file, or from key=value pairs after '--',
which become a ConfigMap.`

const evalExamples = `  # Set the namespace of everything below ./web
  fnctl eval ./web --image set-namespace:v0.4.5 -- namespace=shop

  # Use a function as a filter
  cat deployment.yaml | fnctl eval - --image starlark:v0.5.5 --fn-config check.yaml`

// evalCommand is one call of fnctl eval.
type evalCommand struct {
	env        Environment
	gateway    gatewayFlags
	output     outputFlags
	function   kptfile.Function
	configFile string
}

func newEval(env Environment) *cobra.Command {
	c := &evalCommand{env: env}
	cmd := &cobra.Command{
		Use:     "eval DIR|- --image IMAGE [-- KEY=VALUE...]",
		Short:   "Run one function",
		Long:    evalHelp,
		Example: evalExamples,
		Args:    oneArg("DIR, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := c.prepare(args)
			if err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return c.run(cmd.Context(), args[0], config)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&c.function.Image, "image", "i", "", "the function's image (required)")
	flags.StringVar(&c.function.Tag, "tag", "", "tag or version constraint that replaces the image's tag")
	flags.StringVar(&c.configFile, "fn-config", "", "file with the function's configuration")
	c.gateway.register(flags, env)
	c.output.register(flags)
	return cmd
}

// prepare checks the command line and returns the function's configuration.
func (c *evalCommand) prepare(args []string) (*yaml.RNode, error) {
	pairs := args[1:]
	switch {
	case c.function.Image == "":
		return nil, errors.New("needs --image")
	case c.configFile != "" && len(pairs) > 0:
		return nil, errors.New("takes --fn-config or key=value pairs, not both")
	case args[0] == "-" && (c.output.diff || c.output.dryRun || c.output.target != "" && !c.output.streams()):
		return nil, errors.New("writes what it reads from standard input to standard output: leave out --diff and " +
			"--dry-run, and a directory for --output")
	}
	if err := c.output.check(); err != nil {
		return nil, err
	}
	return evalConfig(c.configFile, pairs)
}

func (c *evalCommand) run(ctx context.Context, dir string, config *yaml.RNode) error {
	gateway, err := c.gateway.connect()
	if err != nil {
		return err
	}
	defer gateway.Close()
	progress := c.env.progress()
	renderer := &pipeline.Renderer{
		Evaluator: c.gateway.evaluator(gateway, progress), Observer: progress,
		Timeout: c.gateway.timeout,
	}
	if dir == "-" {
		return c.filter(ctx, renderer, config)
	}
	tree, err := pkgtree.ReadFlat(dir)
	if err != nil {
		return err
	}
	if err := pipeline.CheckInput(tree.Root.Resources); err != nil {
		return err
	}
	call := pipeline.Call{Package: tree.Root, Function: c.function, Config: cmp.Or(config, noConfig())}
	resources, err := renderer.Mutate(ctx, call, tree.Root.Resources)
	if err != nil {
		return err
	}
	return c.output.write(ctx, c.env, dir, tree, resources)
}

// filter runs the function on standard input. Without a configuration on the command line, it uses
// the one in the ResourceList.
func (c *evalCommand) filter(ctx context.Context, renderer *pipeline.Renderer, config *yaml.RNode) error {
	in := &kio.ByteReader{Reader: c.env.Stdin, PreserveSeqIndent: true}
	resources, err := in.Read()
	if err != nil {
		return err
	}
	if err := pipeline.CheckInput(resources); err != nil {
		return err
	}
	config = cmp.Or(config, in.FunctionConfig, noConfig())
	call := pipeline.Call{Package: &pkgtree.Package{Path: "."}, Function: c.function, Config: config}
	if resources, err = renderer.Mutate(ctx, call, resources); err != nil {
		return err
	}
	if c.output.target == toStdout || c.output.target == "" && in.WrappingKind == kio.ResourceListKind {
		return pkgtree.WriteList(c.env.Stdout, resources)
	}
	return pkgtree.WriteDocuments(c.env.Stdout, resources)
}
