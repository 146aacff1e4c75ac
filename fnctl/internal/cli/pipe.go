// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/complete"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

const sourceHelp = `Source writes the resources of directories to standard output: as a ResourceList, which
functions read, or with '--output unwrap' as plain YAML documents. Without DIR it reads the current
directory.`

const sourceExamples = `  # Send a package through two functions, and write the result elsewhere
  fnctl source ./web |
    fnctl eval - --image set-namespace:v0.4.5 -- namespace=shop |
    fnctl eval - --image starlark:v0.5.5 --fn-config check.yaml |
    fnctl sink ./shop
  # Make the input of a function that you are writing
  fnctl source ./web --fn-config config.yaml | go run ./my-function`

func newSource(env command.Environment) *cobra.Command {
	var output, configFile string
	var kpt kptFlags
	cmd := &cobra.Command{
		Use:               "source [DIR...]",
		Short:             "Write resources to standard output",
		Long:              sourceHelp,
		Example:           sourceExamples,
		ValidArgsFunction: complete.Packages,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if err := cmp.Or(kpt.check(), command.CheckChoice("--output", output, toStdout, unwrap)); err != nil {
				return command.UsageError(cmd, err)
			}
			kpt.reportIgnored(env, cmd.Flags())
			return writeSource(env.Stdout, dirs, output, configFile)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", toStdout, "stdout for a ResourceList, unwrap for plain YAML documents")
	cmd.Flags().StringVar(&configFile, "fn-config", "", "file with the configuration of the function that reads the list")
	kpt.register(cmd.Flags())
	kpt.reject(cmd.Flags(), "include-meta-resources", errMetaResources.Error())
	return cmd
}

func writeSource(out io.Writer, dirs []string, output, configFile string) error {
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	config, err := sourceConfig(configFile)
	if err != nil {
		return err
	}
	var resources []*yaml.RNode
	for _, dir := range dirs {
		_, tree, err := readTarget(dir)
		if err != nil {
			return err
		}
		resources = append(resources, tree.Root.Resources...)
	}
	if output == unwrap {
		return pkgtree.WriteDocuments(out, resources)
	}
	return pkgtree.WriteListFor(out, config, resources)
}

// sourceConfig reads the resource in the file of --fn-config. It returns nil if file is empty. fnctl source outputs the
// resource as the next function's configuration. As in kpt, annotations of the resource contain the file's path.
func sourceConfig(file string) (*yaml.RNode, error) {
	if file == "" {
		return nil, nil
	}
	tree, err := pkgtree.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read --fn-config: %w", err)
	}
	if n := len(tree.Root.Resources); n != 1 {
		return nil, fmt.Errorf("read --fn-config: %s must have one resource, but has %d", file, n)
	}
	return tree.Root.Resources[0], nil
}

const sinkHelp = `Sink writes the resources on standard input to the files of a new directory. A
resource's annotation internal.config.kubernetes.io/path names its file; without it, the file is
named after kind and name.`

func newSink(env command.Environment) *cobra.Command {
	var kpt kptFlags
	cmd := &cobra.Command{
		Use:     "sink DIR",
		Short:   "Write resources from standard input to a new directory",
		Long:    sinkHelp,
		Example: sourceExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError(cmd, errors.New("needs one argument: DIR, a new directory"))
			}
			kpt.reportIgnored(env, cmd.Flags())
			return writeSink(cmd.Context(), env, args[0])
		},
	}
	kpt.register(cmd.Flags())
	return cmd
}

func writeSink(ctx context.Context, env command.Environment, dir string) error {
	if _, err := os.Lstat(filepath.Clean(dir)); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists already: sink writes to a new directory", dir)
	}
	resources, _, err := pkgtree.ReadList(env.Stdin, "standard input")
	if err != nil {
		return err
	}
	if err := kioutil.DefaultPathAndIndexAnnotation("", resources); err != nil {
		return err
	}
	files, err := new(pkgtree.Tree).Files(resources)
	if err != nil {
		return err
	}
	created := pkgtree.Diff(nil, files)
	if err := createFiles(ctx, dir, created); err != nil {
		return err
	}
	env.ErrPrinter().Line("Files: %d created in %s", len(created), dir)
	reportHidden(env, dir, created)
	return nil
}

// createFiles creates a directory and writes files to it.
func createFiles(ctx context.Context, dir string, created []pkgtree.Change) error {
	//nolint:gosec // packages are for others to read, as far as the umask permits
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write package: %w", err)
	}
	return pkgtree.Apply(ctx, dir, created)
}
