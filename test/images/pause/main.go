// SPDX-License-Identifier: Apache-2.0

// Command pause holds a pod's namespaces until it gets SIGTERM.
package main

import (
	"context"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
}
