// SPDX-License-Identifier: Apache-2.0

// Command wrapper-server runs in function pods. It serves evaluations of the pod's function.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/applet"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/wrapper"
)

func main() {
	if run, args := applet.Find(os.Args); run != nil {
		os.Exit(run(args))
	}
	isolate()
	servermain.Begin()
	cfg, err := wrapper.LoadConfig(os.Args[1:], os.Environ(), os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		os.Exit(servermain.RejectConfig("wrapper-server", err))
	}
	if wrapper.InPod(os.Environ()) {
		cfg.Shared = []string{"/tmp", "/dev/shm"} // only the function uses them, because a pod runs a single function
	}
	settings := servermain.Settings{Serve: cfg.Serve, Telemetry: cfg.Telemetry}
	start := func(_ context.Context, frame servermain.Frame) ([]serve.Component, error) {
		component, err := wrapper.New(cfg, frame)
		return []serve.Component{component}, err
	}
	os.Exit(servermain.Main("wrapper-server", settings, start))
}

// isolate executes the program again, in an environment without the image's variables, which could configure the
// server.
func isolate() {
	args, env, needed := wrapper.Isolate(os.Args, os.Environ())
	if needed {
		err := servermain.Execute(args, env)
		err = fmt.Errorf("isolate the server from the image's environment: %w", err)
		os.Exit(servermain.RejectConfig("wrapper-server", err))
	}
	os.Args = args
}
