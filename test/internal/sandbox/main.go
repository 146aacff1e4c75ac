// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a command until it ends or is interrupted, and exits with the code that it returns,
// or with 1 and a message for an error.
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

// Inside makes the namespaces usable that [Run] has made, and calls do in them.
func Inside(do func() (code int, err error)) (code int, err error) {
	if err := enterNamespaces(); err != nil {
		return 1, err
	}
	return do()
}
