// SPDX-License-Identifier: Apache-2.0

// Package images is the command fnctl images, which shows the images of this machine. pull.go pulls images.
package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/evalphase"
)

const imagesHelp = `Images shows the images that this machine has for --local: what 'render --local',
'eval --local' and 'images pull' have pulled. All commands of a user share them, and a function
runner of the same user has them too. FNR_SANDBOX_STORE is their directory.`

const imagesExamples = `  fnctl images
  # Pull all images of a package, to render it without a network later
  fnctl images pull ./web && fnctl render ./web --local --offline
  # Remove all images that are not in use
  fnctl images prune`

// NewCommand returns the command fnctl images.
func NewCommand(env command.Environment) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:     "images",
		Short:   "Show, pull and remove the images of this machine",
		Long:    imagesHelp,
		Example: imagesExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckChoice("--output", output, command.JSON); err != nil {
				return command.UsageError(cmd, err)
			}
			return withImages(cmd.Context(), true, func(images runner.Images) error {
				all, err := images.List()
				if err == nil {
					showImages(env, all, output == command.JSON)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for everything that is known")
	cmd.AddCommand(newPull(env), newPrune(env))
	return cmd
}

// withImages calls the callback do with this machine's store of pulled images, and closes the store afterwards. If
// offline is true, the store calls no registry.
func withImages(ctx context.Context, offline bool, do func(runner.Images) error) error {
	images, err := runner.OpenImages(ctx, offline)
	if err != nil {
		return err
	}
	return errors.Join(do(images), images.Close())
}

// showImages prints images as a table or as JSON.
func showImages(env command.Environment, all []runner.Image, inJSON bool) {
	switch {
	case inJSON:
		env.OutPrinter().Line("%s", ui.ValueJSON(all))
	case len(all) == 0:
		env.ErrPrinter().Line("no images")
	default:
		printTable(env.OutPrinter(), all)
	}
}

// printTable prints images as a table, starting with the most recently used image.
func printTable(out *ui.Printer, all []runner.Image) {
	const digest = len("sha256:0123456789ab")
	out.Line("%-*s  %10s  %-9s  %s", digest, "DIGEST", "SIZE", "USED", "NAME")
	for _, image := range slices.Backward(all) {
		used := evalphase.Short(time.Since(image.Used)) + " ago"
		out.Line("%s  %10s  %-9s  %s", image.Digest[:digest], megabytes(image.Bytes), used,
			ui.OneLine(strings.Join(image.Names, ", ")))
	}
}

// megabytes formats a size in megabytes.
func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

const pruneHelp = `Prune removes images that are not in use, the least recently used first, until all of
them take at most --max-bytes. By default it removes all.`

func newPrune(env command.Environment) *cobra.Command {
	var maxBytes config.Bytes
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove images of this machine that are not in use",
		Long:  pruneHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withImages(cmd.Context(), true, func(images runner.Images) error {
				before, err := images.List()
				if err != nil {
					return err
				}
				left, err := images.Prune(cmd.Context(), int64(maxBytes))
				if err != nil {
					return err
				}
				removed, freed := removedImages(before, left)
				env.ErrPrinter().Line("Removed %s, %s; %d left", ui.Count(removed, "image"), megabytes(freed), len(left))
				return nil
			})
		},
	}
	cmd.Flags().Var(&maxBytes, "max-bytes", "what images may take on disk after that, such as 2Gi")
	return cmd
}

func removedImages(before, left []runner.Image) (n int, bytes int64) {
	for _, image := range before {
		if !slices.ContainsFunc(left, func(l runner.Image) bool { return l.Digest == image.Digest }) {
			n, bytes = n+1, bytes+image.Bytes
		}
	}
	return n, bytes
}
