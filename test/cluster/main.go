// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a single-node Kubernetes with registries on a Debian machine without Docker. It can remove
// the cluster without a trace.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run runs a command line and returns its exit status. If `cluster exec` succeeds, run does not return, because the
// executed command replaces this process.
func run(args []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := rootCommand()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "cluster:", err)
		return 1
	}
	return 0
}
