// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/attribution"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/report"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// writeResult writes the rendered resources to files or to standard output. With --check, it only prints and
// returns the files that would change.
func (c *renderCommand) writeResult(ctx context.Context, dir string, tree *pkgtree.Tree,
	rendering *pipeline.Rendering,
) ([]pkgtree.Change, error) {
	if err := c.addAttribution(rendering.Resources); err != nil {
		return nil, err
	}
	if !c.check {
		if err := c.setStatus(rendering.Resources, rendering, nil); err != nil {
			return nil, err
		}
		return nil, c.output.writeResources(ctx, c.env, dir, tree, rendering.Resources)
	}
	changes, err := tree.Changes(rendering.Resources)
	if c.output.diff {
		c.output.diffPrinter(c.env).Diff(changes)
	} else {
		for _, change := range changes {
			file := filepath.Join(dir, filepath.FromSlash(change.Path))
			c.output.diffPrinter(c.env).Line("%s %s", change.Kind(), ui.OneLine(file))
		}
	}
	return changes, err
}

// addAttribution marks resources of Config Connector as kpt does, unless KRM_DISABLE_ATTRIBUTION is set.
func (c *renderCommand) addAttribution(resources []*yaml.RNode) error {
	if c.env.LookUp("KRM_DISABLE_ATTRIBUTION") != "" {
		return nil
	}
	return attribution.Mark(resources)
}

// setStatus stores the outcome of a rendering in the status of the package's Kptfile. It does nothing with
// --no-status, with --output, or if a function deleted the Kptfile.
func (c *renderCommand) setStatus(resources []*yaml.RNode, rendering *pipeline.Rendering, failure error) error {
	root := pkgtree.KptfileOf(resources)
	if c.noStatus || c.output.target != "" || root == nil {
		return nil
	}
	return report.SetStatus(root, rendering, failure)
}

// writeFailure stores the error of a failed rendering in the Kptfile's status, and returns the error. It also writes
// the changes of earlier functions if the Kptfile's annotation kpt.dev/save-on-render-failure is "true". It writes
// nothing with --output, or if a retry may succeed.
func (c *renderCommand) writeFailure(ctx context.Context, dir string, tree *pkgtree.Tree, rendering *pipeline.Rendering,
	failure error,
) error {
	if call, ok := errors.AsType[*client.CallError](failure); (ok && !call.Lasting) || c.output.target != "" {
		return failure
	}
	changes, err := c.failureChanges(tree, rendering, failure)
	if err != nil {
		return errors.Join(failure, err)
	}
	if c.output.diff {
		c.output.diffPrinter(c.env).Diff(changes)
	}
	if c.output.dryRun || len(changes) == 0 {
		return failure
	}
	if err := pkgtree.Apply(ctx, dir, changes); err != nil {
		return errors.Join(failure, err)
	}
	reportHidden(c.env, dir, changes)
	written := "only the status of the Kptfile was written"
	if tree.Root.Kptfile.SaveOnFailure {
		written = fmt.Sprintf("what was rendered before was written (%s)", c.output.describeChanges(changes))
	}
	return &partlyWritten{failure, written}
}

// failUnplanned handles a package that cannot be rendered. It stores the error in the status of the package's Kptfile,
// and returns the error. Otherwise, the status would still describe an earlier rendering. As in kpt, an invalid Kptfile
// stays unchanged. The argument tree is nil if the package cannot be read.
func (c *renderCommand) failUnplanned(ctx context.Context, dir string, tree *pkgtree.Tree, failure error) error {
	invalid, ok := errors.AsType[*kptfile.FieldError](failure)
	if ok && tree != nil && strings.HasSuffix(invalid.Field, ".configPath") && invalid.File == tree.Root.Kptfile.File &&
		!tree.IsOfSubpackage(invalid.Value) {
		return failure
	}
	tree, err := pkgtree.ReadKptfile(dir)
	if err != nil {
		return failure
	}
	tree.Root.Kptfile.SaveOnFailure = false
	rendering := &pipeline.Rendering{}
	if unplanned, ok := errors.AsType[*pipeline.PlanError](failure); ok {
		rendering = unplanned.Rendering()
	}
	return c.writeFailure(ctx, dir, tree, rendering, failure)
}

// failureChanges returns the file changes to write after a failed rendering. They contain the Kptfile's status. If the
// Kptfile requests it, they also contain the changes of the functions before the failure. They contain no deletions, so
// that a failed rendering deletes no file.
func (c *renderCommand) failureChanges(tree *pkgtree.Tree, rendering *pipeline.Rendering, failure error,
) ([]pkgtree.Change, error) {
	resources := rendering.Resources
	if !tree.Root.Kptfile.SaveOnFailure {
		resources = tree.Original(kptfile.FileName)
	} else if err := c.addAttribution(resources); err != nil {
		return nil, err
	}
	if err := c.setStatus(resources, rendering, failure); err != nil {
		return nil, err
	}
	changes, err := tree.Changes(resources)
	return slices.DeleteFunc(changes, func(change pkgtree.Change) bool { return change.After == nil }), err
}

// partlyWritten is the error of a failed rendering that wrote files. The field written describes these files to users.
type partlyWritten struct {
	error
	written string
}

func (e *partlyWritten) Unwrap() error { return e.error }
