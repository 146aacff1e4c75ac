// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/filelock"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/unused"
)

// withCache changes a command so that it holds a shared lock of the cache while it runs. The lock prevents other
// processes from removing cache entries. After a success, the command removes entries that were not used for a week. It
// removes nothing if another process uses the cache.
func (o *options) withCache(command *cobra.Command) *cobra.Command {
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		release, err := filelock.Share(o.useLock())
		if err != nil {
			return err
		}
		err = run(command, args)
		release()
		if err != nil {
			return err
		}
		if err := o.removeUnused(); err != nil {
			fmt.Fprintln(command.ErrOrStderr(), "unused entries stay in the cache:", err)
		}
		return nil
	}
	return command
}

// useLock returns the path of the cache's lock file. Each command that uses the cache holds a shared lock. The removal
// of entries requires the exclusive lock, so it is possible only while no command runs.
func (o *options) useLock() string { return filepath.Join(o.cache, "use.lock") }

// removeUnused removes cache entries that were not used for a week. It keeps the programs of existing clusters, because
// a cluster may restart them at any time.
func (o *options) removeUnused() error {
	release, err := filelock.Try(o.useLock())
	if errors.Is(err, filelock.ErrHeld) {
		return nil // the process that holds the lock removes the entries
	}
	if err != nil {
		return err
	}
	defer release()
	running, err := listCommands()
	if err != nil {
		return err
	}
	layers := o.builder().Dir
	collections := []string{layers, o.imageCache().Dir, o.registryCache()}
	err = unused.Remove(o.cache, func(path string) bool {
		return slices.Contains(collections, path) || strings.Contains(running, path+"/")
	})
	if _, none := os.Stat(layers); none == nil {
		err = errors.Join(err, unused.Remove(layers, func(string) bool { return false }))
	}
	return err
}

// listCommands returns the command lines of all clusters' programs in a single text. The text shows which cached
// programs the clusters use, because it contains the paths of these programs.
func listCommands() (string, error) {
	clusters, err := os.ReadDir(layout.Root())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for clusters: %w", err)
	}
	var all []byte
	for _, cluster := range clusters {
		specs, err := os.ReadFile(specsFile(layout.Layout{Name: cluster.Name()}))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the components of cluster %s: %w", cluster.Name(), err)
		}
		all = slices.Concat(all, specs)
	}
	return string(all), nil
}
