// SPDX-License-Identifier: Apache-2.0

// Package servermain contains the code that all servers share: telemetry, life cycle, signals and exit codes.
package servermain

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"
	// We link certificate authorities into our programs, because their images contain none. Programs need the authorities
	// to verify the certificates of public registries and of telemetry collectors. Authorities of the operating system
	// take precedence.
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

// flushTimeout limits the time for sending the last telemetry before the program exits. A collector that does not
// answer then delays the exit only briefly.
const flushTimeout = 2 * time.Second

// Settings contains the settings that all programs share. A program's configuration embeds it.
type Settings struct {
	Serve     serve.Config
	Telemetry telemetry.Config
	TLS       mtls.Config
}

// Check adds the problems of these settings to checks.
func (s Settings) Check(checks *config.Checks) {
	checks.Within("Serve", s.Serve.Validate())
	checks.Within("Telemetry", s.Telemetry.Validate())
}

// ValidateWith validates these settings together with a service's configuration, so that users see all problems at
// once. A program calls it in the Validate method of its configuration.
func (s Settings) ValidateWith(service config.Validator) error {
	var checks config.Checks
	checks.Within("", service.Validate())
	s.Check(&checks)
	return checks.Err()
}

// Frame contains the objects that the components of a program share.
type Frame struct {
	Telemetry *telemetry.Telemetry
	Health    *serve.Health
	// Identity is the program's certificate. It is nil if mutual TLS is not configured.
	Identity *mtls.Identity
}

// Build creates a program's components. It must not start goroutines, because components have background tasks for
// this.
type Build func(ctx context.Context, frame Frame) ([]serve.Component, error)

// RejectConfig prints the error of an invalid configuration, and returns the program's exit code.
func RejectConfig(name string, err error) int { return rejectConfig(os.Stderr, name, err) }

func rejectConfig(w io.Writer, name string, err error) int {
	_, _ = fmt.Fprintf(w, "%s: wrong configuration:\n%v\n", name, err)
	return wrongConfig
}

// stopSignals receives the signals that stop the program, such as SIGTERM.
var stopSignals = make(chan os.Signal, 1)

// Begin must be the first statement of a main function. It prints the version and exits if the argument is --version.
// It prevents child processes from inheriting this program's open files. It also subscribes to the signals on which
// Main stops the program. Without a subscription, the kernel drops these signals if the program is the first process of
// a container. Begin therefore precedes the reading of the configuration.
func Begin() {
	if len(os.Args) == 2 && (os.Args[1] == "--version" || os.Args[1] == "-version") {
		_, _ = fmt.Println(filepath.Base(os.Args[0]), version.String()) //nolint:forbidigo // the user asked for it
		os.Exit(ok)
	}
	descriptors.CloseOnExec()
	signal.Notify(stopSignals, syscall.SIGTERM, os.Interrupt)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP; else functions would outlive a lost terminal
		signal.Notify(stopSignals, syscall.SIGHUP)
	}
}

// Main runs the named program and returns its exit code. SIGTERM, SIGINT and SIGHUP stop the program, even if they
// arrive after Begin and before Main.
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
		return nil // nothing to drain: the program has had no clients
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

// flush sends the remaining telemetry before the program exits. It only logs errors, because a program must not fail
// if a telemetry collector is unreachable.
func flush(ctx context.Context, tel *telemetry.Telemetry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := tel.Shutdown(ctx); err != nil {
		otel.Handle(fmt.Errorf("send what is left at the end: %w", err)) // logs at most one error per minute
	}
}

// warnOfCallers logs a warning if FNR_CALLERS restricts the callers but mutual TLS is not configured. The setting then
// has no effect, because the program cannot identify its callers.
func warnOfCallers(ctx context.Context, log *slog.Logger, identity *mtls.Identity) {
	if identity == nil && config.IsSet("Callers") {
		log.WarnContext(ctx, "setting has no effect; any caller is answered",
			"setting", "FNR_CALLERS", "missing", "FNR_TLS_DIRECTORY")
	}
}

// Load fills cfg from environment variables, for programs without flags. With the argument --help, it prints the
// settings and exits. With other arguments or an invalid configuration, it prints the error and exits.
func Load(name string, cfg config.Validator) {
	code, end := loadSettings(name, os.Args[1:], cfg, os.Stdout, os.Stderr)
	if end {
		os.Exit(code)
	}
}

// loadSettings implements Load. If end is true, the program must exit with the returned code.
func loadSettings(name string, args []string, cfg config.Validator, stdout, stderr io.Writer) (code int, end bool) {
	switch {
	case slices.ContainsFunc(args, isHelp):
		_, _ = fmt.Fprintf(stdout, "usage: %s\n\n", name)
		config.Help(stdout, cfg)
		return ok, true
	case len(args) > 0:
		return rejectConfig(stderr, name, fmt.Errorf(
			"unexpected arguments %q: all settings are environment variables, which --help lists", args)), true
	}
	if err := config.Load(cfg); err != nil {
		return rejectConfig(stderr, name, err), true
	}
	return ok, false
}

func isHelp(arg string) bool { return slices.Contains([]string{"help", "-h", "-help", "--help"}, arg) }
