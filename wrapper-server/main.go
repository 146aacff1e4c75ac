// SPDX-License-Identifier: Apache-2.0

// Command wrapper-server runs inside function pods and serves the function there.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/applet"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/wrapper"
)

func main() {
	if run, args := applet.Find(os.Args); run != nil {
		os.Exit(run(args))
	}
	program.Slacken()
	program.Begin()
	cfg, err := wrapper.LoadConfig(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		os.Exit(program.RejectConfig("wrapper-server", err))
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" { //nolint:forbidigo // it is Kubernetes', no setting
		cfg.Shared = []string{"/tmp", "/dev/shm"} // a pod runs one function
	}
	settings := program.Settings{Serve: cfg.Serve, Telemetry: cfg.Telemetry}
	start := func(_ context.Context, frame program.Frame) ([]serve.Component, error) {
		component, err := wrapper.New(cfg, os.Environ(), frame)
		return []serve.Component{component}, err
	}
	os.Exit(program.Main("wrapper-server", settings, start))
}
