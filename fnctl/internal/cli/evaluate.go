// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

func (c *evalCommand) runOnFiles(ctx context.Context, renderer *pipeline.Renderer, where string,
	config *yaml.RNode,
) error {
	dir, tree, err := readTarget(where)
	if err != nil {
		return err
	}
	if c.function.save && pkgtree.KptfileOf(tree.Root.Resources) == nil {
		return fmt.Errorf("--save: %s has no Kptfile to save the function in", where)
	}
	// As in kpt, the file of --fn-config is not part of the function's input.
	input, configs := c.function.withoutConfig(dir, tree.Root.Resources)
	resources, err := c.runFunction(ctx, renderer, tree.Root, config, input)
	if err != nil {
		return err
	}
	resources = append(resources, configs...)
	if err := c.saveFunction(dir, tree, resources); err != nil {
		return err
	}
	return c.output.writeResources(ctx, c.env, dir, tree, resources)
}

// readTarget reads the resources of a directory or a file. The first result is the directory, or the file's directory.
func readTarget(where string) (string, *pkgtree.Tree, error) {
	if info, err := os.Stat(where); err == nil && !info.IsDir() {
		tree, err := pkgtree.ReadFile(where)
		return filepath.Dir(where), tree, err
	}
	tree, err := pkgtree.ReadFlat(where)
	return where, tree, err
}

// runOnInput runs the function on resources from standard input, and writes the result to standard output. Without
// a configuration on the command line, it uses the functionConfig of the input.
func (c *evalCommand) runOnInput(ctx context.Context, renderer *pipeline.Renderer, config *yaml.RNode) error {
	resources, in, err := pkgtree.ReadList(c.env.Stdin, "standard input")
	if err != nil {
		return err
	}
	pkg := &pkgtree.Package{Path: "."}
	if resources, err = c.runFunction(ctx, renderer, pkg, cmp.Or(config, in.FunctionConfig), resources); err != nil {
		return err
	}
	if c.output.target == toStdout || (c.output.target == "" && in.WrappingKind == kio.ResourceListKind) {
		return pkgtree.WriteList(c.env.Stdout, resources)
	}
	return pkgtree.WriteDocuments(c.env.Stdout, resources)
}

func (c *evalCommand) runFunction(ctx context.Context, renderer *pipeline.Renderer, pkg *pkgtree.Package,
	config *yaml.RNode, resources []*yaml.RNode,
) ([]*yaml.RNode, error) {
	if err := pipeline.CheckInput(resources); err != nil {
		return nil, err
	}
	options := pipeline.Options{AllowExec: true, ImagePrefix: c.prefix}
	call, err := options.NewCall(pkg, c.function.Function)
	if err != nil {
		return nil, err
	}
	if call.Config = config; config == nil { // some functions fail without a configuration
		if call.Config, err = pipeline.ConfigMap(nil); err != nil {
			return nil, err
		}
	}
	output, step, err := renderer.Mutate(ctx, call, resources)
	if ctx.Err() != nil && err != nil {
		return nil, err
	}
	return output, errors.Join(err, c.results.write(c.env, []pipeline.Step{step}))
}

// saveFunction adds the function to the package's Kptfile if --save is set. fnctl render then runs this function too.
// As in kpt, it changes the package's own Kptfile even if --output makes fnctl write the resources elsewhere.
func (c *evalCommand) saveFunction(dir string, tree *pkgtree.Tree, resources []*yaml.RNode) error {
	if !c.function.save {
		return nil
	}
	if c.output.target != "" {
		resources = tree.Original(kptfile.FileName)
	}
	root := pkgtree.KptfileOf(resources)
	if root == nil {
		return errors.New("--save: the function deleted the Kptfile")
	}
	done, err := c.function.saveTo(root, dir, c.prefix)
	if err != nil {
		return err
	}
	c.env.ErrPrinter().Line("%s", done)
	if c.output.target == "" || c.output.dryRun {
		return nil
	}
	changes, err := tree.Only(kptfile.FileName, resources)
	if err != nil {
		return err
	}
	return pkgtree.Apply(context.Background(), dir, changes)
}
