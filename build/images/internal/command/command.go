// SPDX-License-Identifier: Apache-2.0

// Package command is what the commands of this module have in common.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Flags returns the flags of a command, whose help begins with the usage.
func Flags(name, usage string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: "+usage)
		flags.PrintDefaults()
	}
	return flags
}

// Run runs a command until it has finished, or a signal ends its context, and exits if it failed. Its
// error is printed after its name; a request for help is none.
func Run(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}
