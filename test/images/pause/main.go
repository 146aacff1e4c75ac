// SPDX-License-Identifier: Apache-2.0

// Command pause is the first process of each pod. It keeps the pod's namespaces alive until it receives SIGTERM.
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
