// SPDX-License-Identifier: Apache-2.0

// Package servermain implements the parts that the main functions of all servers share: telemetry, life cycle, signals
// and exit codes.
package servermain

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"
	// The images of the programs contain no certificate authorities. Without the built-in ones, no public registry and no
	// collector with TLS could be trusted. The authorities of the system take precedence.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/descriptors"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/version"
)

// Exit codes.
const (
	ok          = 0
	failed      = 1
	wrongConfig = 2
)

// flushTimeout limits the time to send the last telemetry, so that a collector that does not answer delays the exit
// only briefly.
const flushTimeout = 2 * time.Second

// Settings are common to all programs. A main function embeds them next to the configuration of its service.
type Settings struct {
	Serve     serve.Config
	Telemetry telemetry.Config
	TLS       mtls.Config
}

// Check records the problems of the settings in checks.
func (s Settings) Check(checks *config.Checks) {
	checks.Within("Serve", s.Serve.Validate())
	checks.Within("Telemetry", s.Telemetry.Validate())
}

// ValidateWith checks a service's configuration and these settings. A main function's Validate calls it.
func (s Settings) ValidateWith(service config.Validator) error {
	var checks config.Checks
	checks.Within("", service.Validate())
	s.Check(&checks)
	return checks.Err()
}

// Frame contains objects that the components of a program need.
type Frame struct {
	Telemetry *telemetry.Telemetry
	Health    *serve.Health
	// Identity is the certificate of the program. It is nil if mutual TLS is not configured.
	Identity *mtls.Identity
}

// Build makes the components of a program. It must not start goroutines: the components' tasks may.
type Build func(ctx context.Context, frame Frame) ([]serve.Component, error)

// RejectConfig prints err, the reason why a program cannot start with its configuration, and returns the exit code.
func RejectConfig(name string, err error) int { return rejectConfig(os.Stderr, name, err) }

func rejectConfig(w io.Writer, name string, err error) int {
	_, _ = fmt.Fprintf(w, "%s: wrong configuration:\n%v\n", name, err)
	return wrongConfig
}

// stopSignals receives the signals that stop a program.
var stopSignals = make(chan os.Signal, 1)

// Begin must be the first statement of a main function. It prints --version, hides inherited descriptors from the
// programs that this program starts, and subscribes to the signals that stop a program. Main acts on these signals.
// Without Begin, a signal that arrives while a program reads its configuration would be lost, because the kernel
// drops signals to which the first process of a container is not subscribed.
func Begin() {
	if len(os.Args) == 2 && (os.Args[1] == "--version" || os.Args[1] == "-version") {
		_, _ = fmt.Println(filepath.Base(os.Args[0]), version.String()) //nolint:forbidigo // the user asked for it
		os.Exit(ok)
	}
	descriptors.CloseOnExec()
	signal.Notify(stopSignals, syscall.SIGTERM, os.Interrupt)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it; else functions outlive a lost terminal
		signal.Notify(stopSignals, syscall.SIGHUP)
	}
}

// Main runs the named program and returns its exit code. The program stops at SIGTERM, SIGINT or SIGHUP, even if the
// signal arrived between Begin and Main.
func Main(name string, settings Settings, build Build) int {
	Begin()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		select {
		case <-stopSignals:
			stop()
		case <-ctx.Done():
		}
	}()
	limitMemory(cgroup.Container)
	err := hideMemory()
	if err == nil {
		err = Run(ctx, name, settings, build)
	}
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return failed
	}
	return ok
}

// Run runs the named program until ctx is canceled.
func Run(ctx context.Context, name string, settings Settings, build Build) error {
	tel, err := telemetry.New(context.WithoutCancel(ctx), name, settings.Telemetry, os.Stderr)
	if err != nil {
		return err
	}
	defer flush(ctx, tel)
	tel.LogErrors()
	tel.Log.InfoContext(ctx, "starting", "version", version.String())
	identity, err := mtls.Open(settings.TLS, tel.Log, tel.Meters)
	if err != nil {
		return err
	}
	warnOfCallers(ctx, tel.Log, identity)
	frame := Frame{Telemetry: tel, Health: new(serve.Health), Identity: identity}
	frame.Health.Explain(identity.Details)
	components, err := build(ctx, frame)
	if ctx.Err() != nil {
		return nil // the program has had no clients, so that there is nothing to drain
	}
	if err != nil {
		return err
	}
	tasks := []serve.Task{returnMemory}
	if identity != nil {
		tasks = append(tasks, identity.Run)
	}
	components = append(components, tel.Component(settings.Telemetry),
		serve.Component{Tasks: tasks, Ready: identity.Available()})
	return serve.Run(ctx, settings.Serve, tel.Log, frame.Health, components...)
}

// flush sends the last telemetry. It only logs errors, because an unreachable collector is not a failure of the
// program.
func flush(ctx context.Context, tel *telemetry.Telemetry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := tel.Shutdown(ctx); err != nil {
		otel.Handle(fmt.Errorf("send what is left at the end: %w", err)) // logs at most one error per minute
	}
}
