// SPDX-License-Identifier: Apache-2.0

// Package wrapper serves one function: it takes evaluations, runs the function's
// entrypoint for each, and returns what that wrote.
package wrapper

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/admission"
	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/deadline"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/oomkill"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// New returns the wrapper server as a part of a program. Functions get the
// variables of environ that are not the server's own.
func New(cfg Config, environ []string, frame program.Frame) (serve.Part, error) {
	runner, err := newRunner(cfg, frame)
	if err != nil {
		return serve.Part{}, err
	}
	s := &server{
		command:   command(cfg, functionEnv(environ)),
		admission: admission.New(admission.Limits{Concurrent: cfg.concurrency(), Queue: cfg.Queue}),
		runner:    runner,
		maxTime:   cfg.MaxEvaluationTime,
	}
	rpc := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health}
	handler, err := rpcserve.NewHandler(rpc, rpcserve.Service{
		Name: evaluatorconnect.FunctionEvaluatorName, Handler: s.handler,
		MaxRequestBytes: cfg.MaxRequestBodySize, MaxResponseBytes: cfg.MaxRequestBodySize,
	})
	if err != nil {
		return serve.Part{}, fmt.Errorf("set up the wrapper server: %w", err)
	}
	return serve.Part{
		Endpoints: []serve.Endpoint{{Name: "evaluator", Address: ":" + strconv.Itoa(cfg.Port), Handler: handler}},
		Tasks:     []serve.Task{s.maintain},
	}, nil
}

// newRunner returns what runs the function.
func newRunner(cfg Config, frame program.Frame) (*function.Runner, error) {
	reaper, err := fnproc.NewReaper(frame.Telemetry.Log)
	if err != nil {
		return nil, err
	}
	preforks, err := function.NewPreforks(frame.Telemetry.Meters.Meter("wrapper-server"))
	if err != nil {
		return nil, err
	}
	confiner, err := cfg.Confiner(frame.Telemetry.Log, true)
	if err != nil {
		return nil, err
	}
	pool := fnproc.NewPreforkPool(fnproc.PreforkConfig{
		Keep: func(string) int { return cfg.Prefork }, Total: cfg.Prefork, Unused: function.PreforkUnused, Log: frame.Telemetry.Log,
	})
	return &function.Runner{
		Processes:  fnproc.Runner{Reaper: reaper, Confiner: confiner, Prefork: pool},
		Limits:     cfg.limits(),
		Wording:    function.WrapperWording,
		FlattenLog: cfg.FlattenLog,
		Memory:     oomkill.New(cgroup.Container),
		Tracer:     frame.Telemetry.Tracers.Tracer("wrapper-server"),
		Preforks:   preforks,
	}, nil
}

// server implements Porch's FunctionEvaluator service around one command.
type server struct {
	command   fnproc.Command
	admission *admission.Gate
	runner    *function.Runner
	maxTime   time.Duration
}

// maxTimeSetting is what people call the bound on an evaluation's time.
const maxTimeSetting = "the wrapper server's setting FNR_MAX_EVALUATION_TIME"

// maintain does what goes on beside evaluations. Function processes are kept started
// from the beginning: there will be evaluations.
func (s *server) maintain(ctx context.Context) error {
	s.runner.Prepare(s.command)
	s.runner.Processes.Maintain(ctx)
	return nil
}

func (s *server) handler(options ...connect.HandlerOption) (path string, handler http.Handler) {
	return evaluatorconnect.NewFunctionEvaluatorHandler(s, connect.WithHandlerOptions(options...), connect.WithInterceptors(function.Late()))
}

// EvaluateFunction implements the service. The image is whatever the caller calls
// the function: there is only one here.
func (s *server) EvaluateFunction(ctx context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
	ctx, cancel := deadline.After(s.maxTime, maxTimeSetting).Context(ctx)
	defer cancel()
	if err := function.CheckInput(ctx, req.GetImage(), req.GetResourceList()); err != nil {
		return nil, err
	}
	start := time.Now()
	release, err := s.admission.Acquire(ctx, admission.Claim{Function: s.command.Path, Caller: rpcserve.Caller(ctx)})
	if err != nil {
		return nil, function.NotAdmitted(req.GetImage(), time.Since(start), err)
	}
	defer release()
	result, err := s.runner.Run(ctx, req.GetImage(), s.command, req.GetResourceList())
	if err != nil {
		return nil, err
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: result.ResourceList, Log: result.Log}, nil
}

// command returns what a container of the function's image would run, in an environment.
func command(cfg Config, env []string) fnproc.Command {
	path := cfg.Entrypoint[0]
	// A program that is not found is reported with each evaluation: the pod's
	// caller reads that, but not the log of a pod that does not start.
	if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	return fnproc.Command{Path: path, Args: cfg.Entrypoint[1:], Env: function.WithProcessors(env, cfg.Processors), Network: cfg.Network}
}

// functionEnv returns the image's own environment: what is left of the pod's
// without the server's settings and without what Kubernetes injects.
func functionEnv(environ []string) []string {
	env := []string{}
	for _, variable := range environ {
		if !hasAnyPrefix(variable, "FNR_", "OTEL_", "KUBERNETES_") {
			env = append(env, variable)
		}
	}
	return env
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
