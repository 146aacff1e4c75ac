// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner"
)

// Start starts a function runner in this process, with settings from environment variables. Callers must close it.
func Start(ctx context.Context, cfg Config) (Runner, error) {
	settings, err := localrunner.Load()
	if err != nil {
		return nil, err
	}
	settings.Gateway.MaxMessageBytes = config.Bytes(cfg.MaxMessageBytes)
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	r, err := localrunner.Start(ctx, localrunner.Config{
		Settings: settings, Offline: cfg.Offline, Environment: cfg.Environment, Arguments: cfg.Arguments,
	})
	if err != nil {
		return nil, fmt.Errorf("functions cannot run on this machine: %w", err)
	}
	return r, nil
}

// TryLaunchers tests the methods of starting sandboxes on this machine in order, and stops at the first method that
// works. If FNR_SANDBOX is not auto, it tests only the method that FNR_SANDBOX names.
func TryLaunchers(ctx context.Context) (trials []Launcher, err error) {
	settings, err := localrunner.Load()
	if err != nil {
		return nil, err
	}
	localrunner.TryLaunchers(ctx, settings, func(name string, err error) {
		trial := Launcher{Name: name}
		if err != nil {
			trial.Problem = err.Error()
		}
		trials = append(trials, trial)
	})
	return trials, nil
}

// OpenImages opens the store of pulled images. If offline is true, it calls no registry. Callers must close it.
func OpenImages(ctx context.Context, offline bool) (Images, error) {
	settings, err := localrunner.Load()
	if err != nil {
		return nil, err
	}
	stored, err := localrunner.OpenImages(ctx, settings, offline)
	if err != nil {
		return nil, err
	}
	return images{stored}, nil
}

// images implements [Images] with the image store of the function runner.
type images struct{ *localrunner.Images }

// List implements [Images].
func (i images) List() ([]Image, error) {
	stored, err := i.Images.List()
	if err != nil {
		return nil, err
	}
	return i.addNames(stored)
}

// Prune implements [Images].
func (i images) Prune(ctx context.Context, maxBytes int64) ([]Image, error) {
	stored, err := i.Images.Prune(ctx, maxBytes)
	if err != nil {
		return nil, err
	}
	return i.addNames(stored)
}

func (i images) addNames(stored []localrunner.StoredImage) ([]Image, error) {
	names, err := i.Names()
	if err != nil {
		return nil, err
	}
	all := []Image{}
	for _, s := range stored {
		image := Image{Digest: s.Digest, Bytes: s.Bytes, Files: s.Files, Used: s.Used}
		for _, name := range names {
			if name.Digest == s.Digest && name.Tag != "" {
				image.Names = append(image.Names, name.Repository+":"+name.Tag)
			}
		}
		if len(image.Names) == 0 {
			image.Names = []string{s.Repository}
		}
		slices.Sort(image.Names)
		all = append(all, image)
	}
	return all, nil
}
