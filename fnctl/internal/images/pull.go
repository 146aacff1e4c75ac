// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/complete"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

const pullHelp = `Pull pulls all images that the pipelines of a package, and of the packages inside it, name,
or those of --image. 'render --local --offline' needs no network then.`

const pullExamples = `  fnctl images pull ./web
  fnctl images pull --image set-namespace:v0.4.5`

// pullCommand holds the flags of fnctl images pull, and a lock for its output.
type pullCommand struct {
	env    command.Environment
	prefix string
	images []string

	mu sync.Mutex // guards the output
}

func newPull(env command.Environment) *cobra.Command {
	c := &pullCommand{env: env}
	cmd := &cobra.Command{
		Use:               "pull [DIR]",
		Short:             "Pull the images of a package",
		Long:              pullHelp,
		Example:           pullExamples,
		Args:              command.OneTarget("DIR, a package"),
		ValidArgsFunction: complete.Packages,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && len(c.images) > 0 {
				return command.UsageError(cmd, errors.New("takes DIR or --image, not both"))
			}
			return c.run(cmd.Context(), command.TargetArgument(cmd, args))
		},
	}
	cmd.Flags().StringArrayVarP(&c.images, "image", "i", nil,
		"pull this image, instead of the images of a package; may be repeated")
	command.RegisterImagePrefix(cmd.Flags(), env, &c.prefix)
	_ = cmd.RegisterFlagCompletionFunc("image", complete.Images)
	return cmd
}

func (c *pullCommand) run(ctx context.Context, dir string) error {
	wanted, err := c.listImages(dir)
	if err != nil {
		return err
	}
	return withImages(ctx, false, func(images runner.Images) error {
		failed := make([]error, len(wanted))
		var pulls errgroup.Group
		pulls.SetLimit(maxPulls)
		for i, image := range wanted {
			pulls.Go(func() error {
				if err := c.pullImage(ctx, images, image); err != nil {
					failed[i] = fmt.Errorf("%s: %w", image.Image, err)
				}
				return nil // continue with the remaining images
			})
		}
		_ = pulls.Wait()
		return errors.Join(failed...)
	})
}

// maxPulls is the maximum number of concurrent pulls.
const maxPulls = 4

// listImages returns the images to pull, from --image or, without this flag, from the package in dir.
func (c *pullCommand) listImages(dir string) (images []pipeline.ImageTag, err error) {
	options := pipeline.Options{AllowExec: true, ImagePrefix: c.prefix}
	for _, image := range c.images {
		images = append(images, pipeline.ImageTag{Image: options.FullName(image)})
	}
	if len(images) > 0 {
		return images, nil
	}
	_, plan, err := pipeline.ReadPlan(dir, options)
	if err != nil {
		return nil, err
	}
	return plan.Images(), nil
}

// pullImage pulls an image and shows the progress on terminals.
func (c *pullCommand) pullImage(ctx context.Context, images runner.Images, image pipeline.ImageTag) error {
	show := func(line string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.env.ReplaceLine(line)
	}
	name, err := images.Pull(ctx, image.Image, image.Tag, func(phase string) {
		show(image.Image + ": " + phase)
	})
	show("")
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.env.ErrPrinter().Line("%s is here", ui.OneLine(name))
	return nil
}
