// SPDX-License-Identifier: Apache-2.0

// Command images builds the container images of this project's programs with ko, and pushes them to a registry. It
// reads the registry's credentials from docker's configuration file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/krm-function-runner/function-runner/build/images/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// run builds and pushes the images that the command line specifies.
func run(ctx context.Context, args []string) error {
	publisher, err := parsePublisher(args)
	if err != nil {
		return err
	}
	if publisher.Layers, err = os.MkdirTemp("", "fnr-images-"); err != nil {
		return fmt.Errorf("make a directory for layers: %w", err)
	}
	defer func() { _ = os.RemoveAll(publisher.Layers) }()
	return publisher.Publish(ctx)
}

// parsePublisher returns a publisher with the settings from the command line.
func parsePublisher(args []string) (release.Publisher, error) {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: images [FLAG]... REPOSITORY, such as registry.example/fnr")
		flags.PrintDefaults()
	}
	root := flags.String("root", ".", "root of the repository, in which make kodata was run")
	tag := flags.String("tag", "latest", "tag of the images, and the version that the programs print")
	revision := flags.String("revision", "", "commit that the images are built from, for their labels")
	if err := flags.Parse(args); err != nil {
		return release.Publisher{}, err
	}
	if flags.NArg() != 1 {
		return release.Publisher{}, errors.New("name the repository of the images, such as registry.example/fnr")
	}
	path, err := filepath.Abs(*root)
	if err != nil {
		return release.Publisher{}, fmt.Errorf("find the repository: %w", err)
	}
	return release.Publisher{
		Repository: flags.Arg(0), Tag: *tag, Revision: *revision, Out: os.Stdout,
		Ko: release.Ko{Command: release.GoRunKo, Env: append(os.Environ(), "VERSION="+*tag), Root: path},
	}, nil
}
