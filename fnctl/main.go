// SPDX-License-Identifier: Apache-2.0

// Command fnctl runs KRM functions on kpt packages, through a function runner or on this machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/libs/descriptors"
)

func main() {
	descriptors.CloseOnExec() // programs and sandboxes inherit no files of the parent of fnctl
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	code := cli.Run(ctx, cli.Environment{
		Address:          os.Getenv("FNCTL_ADDRESS"),
		Namespace:        os.Getenv("FNCTL_NAMESPACE"),
		NoColour:         os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
		ForceColour:      os.Getenv("NO_COLOR") == "" && !slices.Contains([]string{"", "0"}, os.Getenv("CLICOLOR_FORCE")),
		NoAttribution:    os.Getenv("KRM_DISABLE_ATTRIBUTION") != "",
		ImagePrefix:      os.Getenv("KPT_IMAGE_PREFIX"),
		ContainerRuntime: os.Getenv("KPT_FN_RUNTIME"),
		Environ:          os.Environ(),
		Stdin:            os.Stdin,
		Stdout:           os.Stdout,
		Stderr:           os.Stderr,
	}, cli.Arguments(os.Args))
	stop()
	os.Exit(code)
}

// stopSignals returns the signals after which fnctl cleans up and exits. They include the signal of a lost terminal,
// because sandboxes would otherwise continue to run. If nohup ignores that signal, fnctl ignores it too.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
