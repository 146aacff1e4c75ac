// SPDX-License-Identifier: Apache-2.0

// Command functions builds the images of the example functions and serves them in a read-only registry on loopback. It
// prints the registry's address once clients can pull the images, and runs until a signal stops it. It needs no
// container engine: it builds the images from the compiled Go function, and from this machine's shell and Node.js.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "functions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var s sources
	flags := flag.NewFlagSet("functions", flag.ContinueOnError)
	flags.StringVar(&s.team, "team", "", "path of the Go function, built for Linux")
	flags.StringVar(&s.packages, "packages", "", "directory into which the Debian packages of Node.js are unpacked; "+
		"empty uses this machine's")
	dir := flags.String("dir", "", "directory for layers, which later runs use again")
	if err := flags.Parse(args); err != nil {
		return err
	}
	specs, err := s.images()
	if err != nil {
		return err
	}
	return serveRegistry(ctx, *dir, specs, os.Stdout)
}
