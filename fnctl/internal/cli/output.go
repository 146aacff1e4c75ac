// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// Values of --output for standard output, as in kpt: toStdout for a ResourceList, unwrap for plain YAML documents.
const (
	toStdout = "stdout"
	unwrap   = "unwrap"
)

// outputFlags holds the flags that select the destination of the changed resources.
type outputFlags struct {
	target string
	diff   bool
	dryRun bool
	// quiet is true if standard output is reserved for a report, so that diffs go to standard error.
	quiet bool
}

func (f *outputFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.target, "output", "o", "",
		"write to a new directory instead of in place; 'stdout' writes a ResourceList to standard output, 'unwrap' plain "+
			"YAML documents")
	flags.BoolVar(&f.diff, "diff", false, "show what changed as a diff")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write no files")
}

// check rejects invalid values of --output before any function runs.
func (f *outputFlags) check() error {
	if f.target == "" || f.isStream() {
		return nil
	}
	if slices.Contains([]string{"json", "yaml", "wide"}, f.target) {
		return fmt.Errorf("takes stdout, unwrap or a new directory for --output: a directory of this name is ./%s", f.target)
	}
	if err := command.RejectLink("--output", f.target); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--output: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("--output: directory %s exists already and is not empty", f.target)
	}
	return nil
}

// isStream reports whether the resources are written to standard output, not to files.
func (f *outputFlags) isStream() bool { return f.target == toStdout || f.target == unwrap }

// writeResources writes resources to files or to standard output. With --diff, it also shows the changes.
func (f *outputFlags) writeResources(ctx context.Context, env command.Environment, dir string, tree *pkgtree.Tree,
	resources []*yaml.RNode,
) error {
	changes, err := tree.Changes(resources)
	if err != nil {
		return err
	}
	if f.diff {
		f.diffPrinter(env).Diff(changes)
	}
	switch f.target {
	case toStdout:
		return pkgtree.WriteList(env.Stdout, resources)
	case unwrap:
		return pkgtree.WriteDocuments(env.Stdout, resources)
	}
	if err := f.saveFiles(ctx, dir, tree, resources, changes); err != nil {
		return err
	}
	env.ErrPrinter().Line("%s", f.describeChanges(changes))
	reportHidden(env, cmp.Or(f.target, dir), changes)
	return nil
}

// reportHidden prints the path of each hidden file that functions created. Users would otherwise miss these files,
// although editors, shells and CI systems execute some of them.
func reportHidden(env command.Environment, dir string, changes []pkgtree.Change) {
	for _, c := range changes {
		if hidden := pkgtree.HiddenPath(dir, c.Path); hidden != "" && c.Before == nil {
			env.ErrPrinter().Line("New hidden file: %s", ui.OneLine(hidden))
		}
	}
}

// diffPrinter returns a printer to standard output, or to standard error if standard output has another use.
func (f *outputFlags) diffPrinter(env command.Environment) *ui.Printer {
	if f.isStream() || f.quiet {
		return env.ErrPrinter()
	}
	return env.OutPrinter()
}

// saveFiles writes the changed files to the package. With --output, it instead writes all files to a new directory.
// With --dry-run, it writes nothing. It then only checks whether a package's own files may be written.
func (f *outputFlags) saveFiles(ctx context.Context, dir string, tree *pkgtree.Tree, resources []*yaml.RNode,
	changes []pkgtree.Change,
) error {
	switch {
	case f.target == "" && f.dryRun:
		return pkgtree.Check(dir, changes)
	case f.target == "":
		return pkgtree.Apply(ctx, dir, changes)
	case f.dryRun:
		return nil
	}
	files, err := tree.Files(resources)
	if err != nil {
		return err
	}
	return createFiles(ctx, f.target, pkgtree.Diff(nil, files))
}

func (f *outputFlags) describeChanges(changes []pkgtree.Change) string {
	kinds := map[string]int{}
	for _, c := range changes {
		kinds[c.Kind()]++
	}
	text := fmt.Sprintf("Files: %d changed, %d created, %d deleted", kinds["changed"], kinds["created"], kinds["deleted"])
	switch {
	case f.dryRun:
		return text + "; nothing was written"
	case f.target != "":
		return text + "; written to " + f.target
	}
	return text
}
