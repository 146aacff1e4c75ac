// SPDX-License-Identifier: Apache-2.0

// Package wrapper serves one function: it takes evaluations, runs the function's
// entrypoint for each, and returns what that wrote.
package wrapper

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/evalserve"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// New returns the wrapper server as a part of a program.
func New(cfg Config, frame program.Frame) (serve.Component, error) {
	identity, access, err := cfg.TLS.identity(frame)
	if err != nil {
		return serve.Component{}, fmt.Errorf("set up the certificate: %w", err)
	}
	service, err := newService(cfg, frame)
	if err != nil {
		return serve.Component{}, err
	}
	s := &server{
		command: command(cfg), service: service, maxMessage: int64(cfg.MaxRequestBodySize),
		maxTime: cfg.MaxEvaluationTime,
		budget:  evalserve.NewBudget(evalserve.DefaultBytes(cgroup.Container, cfg.MaxRequestBodySize), windows, ""),
	}
	rpc := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access, Port: "evaluator"}
	handler, err := rpcserve.NewHandler(rpc, rpcserve.Service{
		Name: evaluatorconnect.FunctionEvaluatorName, Handler: s.handler,
		MaxRequestBytes: cfg.MaxRequestBodySize, MaxResponseBytes: cfg.MaxRequestBodySize,
	})
	if err != nil {
		service.Close()
		return serve.Component{}, fmt.Errorf("set up the wrapper server: %w", err)
	}
	return serve.Component{
		Endpoints: []serve.Endpoint{{
			Name: "evaluator", Address: ":" + strconv.Itoa(cfg.Port), Handler: handler,
			Windows: windows, MaxConnections: maxConnections, MaxConnectionsPerPeer: maxConnectionsPerPeer,
			TLS: identity.Server(),
		}},
		Tasks: []serve.Task{s.maintain},
	}, nil
}

// windows are larger than those of other endpoints: a list of megabytes that comes from another node would
// wait for dozens of round trips. As few clients connect to a pod, gateways and what checks its health,
// connections are fewer by as much.
var windows = serve.Windows{Request: 4 * serve.ReceiveWindow, Connection: serve.MaxWindow}

const (
	maxConnections        = serve.DefaultMaxConnections / 4
	maxConnectionsPerPeer = serve.DefaultMaxConnectionsPerPeer / 4
)

// newService returns the service that runs the function.
func newService(cfg Config, frame program.Frame) (*function.Service, error) {
	return function.NewService(function.ServiceConfig{
		Program:         "wrapper-server",
		Settings:        cfg.Settings,
		Confinement:     cfg.Confinement,
		Pod:             true,
		MaxMessageBytes: cfg.MaxRequestBodySize,
		Env:             cfg.Env,
		PreforkTotal:    cfg.Prefork,
		Hidden:          hidden(cfg.Network),
		Shared:          cfg.Shared,
		Wording:         function.WrapperWording,
		FlattenLog:      cfg.FlattenLog,
		Telemetry:       frame.Telemetry,
	})
}

// tokens is where Kubernetes mounts service account tokens. Our pods have none, templates of users
// may.
const tokens = "/var/run/secrets/kubernetes.io" //nolint:gosec // a path, no credential

// hidden returns what the function may not read: without network it has no use for a token.
func hidden(network bool) []string {
	if network {
		return nil
	}
	return []string{tokens}
}

// server implements Porch's FunctionEvaluator service around one command.
type server struct {
	command    fnproc.Command
	service    *function.Service
	maxTime    time.Duration
	maxMessage int64
	budget     *evalserve.Budget
}

// maxTimeSetting is what users set to change the bound on an evaluation's time.
const maxTimeSetting = "the pod-manager's setting FNR_MAX_EVALUATION_TIME (" +
	"without a pod-manager, the wrapper server's --max-evaluation-time), or the function's maxEvaluationTime"

// maintain keeps spare processes from the start: there will be evaluations.
func (s *server) maintain(ctx context.Context) error {
	s.service.Prepare(s.command)
	return s.service.Maintain(ctx)
}

func (s *server) handler(options ...connect.HandlerOption) (path string, handler http.Handler) {
	options = append(options, connect.WithInterceptors(function.WordEarlyDeadline()))
	return evalserve.NewHandler(evalserve.Config{Service: s, Budget: s.budget, MaxMessageBytes: s.maxMessage}, options...)
}

// EvaluateFunction implements the service. The image is whatever the caller calls
// the function: there is only one here.
func (s *server) EvaluateFunction(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	result, err := s.evaluate(ctx, req)
	req.ResourceList = nil // what is reserved from here on is the answer alone
	if err != nil {
		return nil, err
	}
	if err := evalserve.Of(ctx).Answer(ctx, int64(len(result.ResourceList)+len(result.Log))); err != nil {
		return nil, err
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: result.ResourceList, Log: result.Log}, nil
}

// evaluate runs the function. The gateway has checked the input.
func (s *server) evaluate(ctx context.Context, req *evaluator.EvaluateFunctionRequest) (function.Result, error) {
	ctx, cancel := function.NewTimeLimit(s.maxTime, maxTimeSetting).Context(ctx)
	defer cancel()
	return s.service.Evaluate(ctx, function.Evaluation{
		Image: req.GetImage(), Command: s.command, ResourceList: req.GetResourceList(), Caller: rpcserve.Caller(ctx),
	})
}

// command returns what a container of the function's image would run.
func command(cfg Config) fnproc.Command {
	path := findProgram(cfg.Entrypoint[0], lookup(cfg.Env, "PATH"))
	return fnproc.Command{Path: path, Args: cfg.Entrypoint[1:], Network: cfg.Network}
}

// findProgram returns the path of a program that is searched in the directories of the image, as containers do. One
// that is not found is reported with each evaluation: the pod's caller reads that, but not the log of a pod that does
// not start.
func findProgram(name, directories string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, dir := range filepath.SplitList(directories) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) {
			if _, err := exec.LookPath(path); err == nil {
				return path
			}
		}
	}
	return name
}
