// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package runner

import (
	"context"
	"errors"
)

// errLinux is the error of operations that require sandboxes, on systems other than Linux.
var errLinux = errors.New("functions run on your own machine on Linux only, where bubblewrap is: " +
	"give the address of a function runner with --address or FNCTL_ADDRESS")

// Start returns an error, because sandboxes require Linux.
func Start(context.Context, Config) (Runner, error) { return nil, errLinux }

// TryLaunchers returns an error, because sandboxes require Linux.
func TryLaunchers(context.Context) ([]Launcher, error) { return nil, errLinux }

// OpenImages returns an error, because sandboxes require Linux.
func OpenImages(context.Context, bool) (Images, error) { return nil, errLinux }
