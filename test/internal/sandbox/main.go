// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main calls run and exits with the code that run returns. If run returns an error, Main prints the error, and the exit
// code is at least 1. SIGINT and SIGTERM cancel the context that run receives.
func Main(name string, run func(ctx context.Context, args []string) (code int, err error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Inside sets up the namespaces that [Run] has created, and then calls do in them.
func Inside(do func() (code int, err error)) (code int, err error) {
	if err := enterNamespaces(); err != nil {
		return 1, err
	}
	return do()
}
