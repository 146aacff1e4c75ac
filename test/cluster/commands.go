// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// options are the options of all subcommands.
type options struct {
	name  string
	cache string
	root  string
}

func rootCommand() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real single-node Kubernetes without Docker",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.name, "name", "fnr", "name of the cluster; several can run side by side")
	flags.StringVar(&o.cache, "cache", defaultCache(), "directory that keeps built programs")
	flags.StringVar(&o.root, "root", ".", "root of the repository")
	root.AddCommand(
		o.withCache(upCommand(&o)), downCommand(&o), statusCommand(&o), logsCommand(&o), evidenceCommand(&o), execCommand(&o),
		o.withCache(imagesCommand(&o)), o.withCache(previousCommand(&o)), o.withCache(porchCommand(&o)),
		o.withCache(toolCommand(&o)),
		initCommand(&o), superviseCommand(&o),
	)
	return root
}

func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/var/cache"
	}
	return filepath.Join(dir, "function-runner", "cluster")
}

func (o *options) layout() (layout.Layout, error) { return layout.New(o.name) }

func (o *options) store() component.Store {
	return component.Store{Dir: o.cache, Log: os.Stderr}
}

// needSources returns an error unless the option --root names the root of this repository, which contains the sources
// of the images. Commands call needSources before they start anything.
func (o *options) needSources() error {
	if _, err := os.Stat(filepath.Join(o.root, "test", "go.mod")); err != nil {
		return fmt.Errorf("find the sources of the images: %w; run in the root of the repository or use --root", err)
	}
	return nil
}

// needRoot returns an error unless the user is root. Commands call needRoot first, so that they do not fail halfway.
func needRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("namespaces, mounts and control groups need root: run as root, for example with sudo")
	}
	return nil
}
