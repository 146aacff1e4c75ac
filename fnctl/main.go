// SPDX-License-Identifier: Apache-2.0

// Command fnctl runs KRM functions on kpt packages, through a function runner or on this machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/docker"
	"github.com/krm-function-runner/function-runner/libs/descriptors"
)

func main() {
	descriptors.CloseOnExec() // programs and sandboxes must not inherit open files of fnctl's parent
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	env := command.Environment{Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	code := cli.Run(ctx, env, docker.Arguments(os.Args))
	stop()
	os.Exit(code)
}

// stopSignals returns the signals after which fnctl cleans up and exits. They include SIGHUP, the signal of a lost
// terminal. Otherwise, sandboxes would continue to run. Under nohup, which ignores SIGHUP, fnctl ignores it too.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
