// SPDX-License-Identifier: Apache-2.0

// Package complete suggests packages and images to shells that complete a command line of fnctl.
package complete

import (
	"context"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

const (
	// timeout is the maximum wait of a shell completion for the gateway. Users expect an immediate response
	// to the Tab key.
	timeout = 500 * time.Millisecond
	// maxEntries is the maximum number of directory entries that a shell completion visits, to stay fast.
	maxEntries = 5000
)

// Packages suggests directories that contain a Kptfile, at any depth, for the argument of a command.
func Packages(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Name() != "source" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, file := range findKptfiles(typed) {
		if dir := filepath.Dir(file); strings.HasPrefix(dir, typed) {
			found = append(found, dir)
		}
	}
	if len(found) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// findKptfiles returns the paths of Kptfiles for a shell completion. It searches below the directory part of the
// typed text, or below the current directory if the text contains no directory.
func findKptfiles(typed string) []string {
	root := filepath.Dir(typed)
	if strings.HasSuffix(typed, string(filepath.Separator)) {
		root = filepath.Clean(typed)
	}
	var found []string
	seen := 0
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		seen++
		switch hidden := name != root && strings.HasPrefix(entry.Name(), "."); {
		case seen > maxEntries:
			return fs.SkipAll
		case err != nil || (entry.IsDir() && hidden):
			return fs.SkipDir
		case entry.Name() == kptfile.FileName:
			found = append(found, name)
		}
		return nil
	})
	return found
}

// Images suggests images for the flag --image, from Kptfiles below the current directory and from the gateway.
func Images(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	images := map[string]bool{}
	for _, file := range findKptfiles("") {
		data, err := pkgtree.ReadInside(filepath.Dir(file), filepath.Base(file))
		if err != nil {
			continue
		}
		if k, err := kptfile.Parse(file, data); err == nil {
			for _, f := range slices.Concat(k.Pipeline.Mutators, k.Pipeline.Validators) {
				images[f.Image] = true
			}
		}
	}
	for _, image := range servedImages(cmd) {
		images[image] = true
	}
	for image := range maps.Clone(images) {
		images[kptfile.ShortName(image)] = true
	}
	delete(images, "")
	maps.DeleteFunc(images, func(image string, _ bool) bool { return !strings.HasPrefix(image, typed) })
	return slices.Sorted(maps.Keys(images)), cobra.ShellCompDirectiveNoFileComp
}

// servedImages returns the images that the gateway runs, for a shell completion. It returns none if the gateway
// does not answer within 500 ms.
func servedImages(cmd *cobra.Command) []string {
	flag := cmd.Flags().Lookup("address")
	if flag == nil || cmd.Flag("namespace").Value.String() != "" { // kubectl is too slow for a completion
		return nil
	}
	gateway, err := client.New(client.Config{
		Address: flag.Value.String(), MaxMessageBytes: backend.DefaultMaxMessageBytes,
	})
	if err != nil {
		return nil
	}
	defer gateway.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	images, _ := gateway.Images(ctx)
	return images
}
