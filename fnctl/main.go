// SPDX-License-Identifier: Apache-2.0

// Command fnctl runs KRM functions on packages through a function runner.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Environment{
		Address:  os.Getenv("FNR_ADDRESS"),
		NoColour: os.Getenv("NO_COLOR") != "",
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}
