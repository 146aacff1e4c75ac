// SPDX-License-Identifier: Apache-2.0

// Package wrapper serves a single function: it runs the function's entrypoint for each evaluation, and returns its
// output.
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
	identity, access, err := cfg.TLS.newIdentity(frame)
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
		Name: evaluatorconnect.FunctionEvaluatorName, Handler: s.newHandler,
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
		Tasks: []serve.Task{s.keepPrepared},
	}, nil
}

// windows are larger than the windows of other endpoints: a list of megabytes from another node would wait for dozens
// of round trips. Connections are fewer in proportion, because few clients connect to a pod: gateways and health
// checks.
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
		Hidden:          hiddenPaths(cfg.Network),
		Shared:          cfg.Shared,
		Wording:         function.WrapperWording,
		FlattenLog:      cfg.FlattenLog,
		Telemetry:       frame.Telemetry,
	})
}

// tokens is the mount path of service account tokens. Our pods contain no token, but pods of users' templates may.
const tokens = "/var/run/secrets/kubernetes.io" //nolint:gosec // a path, no credential

// hiddenPaths returns the paths that the function must not read. Without network it does not need a token.
func hiddenPaths(network bool) []string {
	if network {
		return nil
	}
	return []string{tokens}
}

// server implements Porch's FunctionEvaluator service for a command.
type server struct {
	command    fnproc.Command
	service    *function.Service
	maxTime    time.Duration
	maxMessage int64
	budget     *evalserve.Budget
}

// maxTimeSetting names the settings of the time limit, for users.
const maxTimeSetting = "the pod-manager's setting FNR_MAX_EVALUATION_TIME (" +
	"without a pod-manager, the wrapper server's --max-evaluation-time), or the function's maxEvaluationTime"

// keepPrepared keeps spare processes from the start: there will be evaluations.
func (s *server) keepPrepared(ctx context.Context) error {
	s.service.Prepare(s.command)
	return s.service.Maintain(ctx)
}

func (s *server) newHandler(options ...connect.HandlerOption) (path string, handler http.Handler) {
	options = append(options, connect.WithInterceptors(function.WordEarlyDeadline()))
	return evalserve.NewHandler(evalserve.Config{Service: s, Budget: s.budget, MaxMessageBytes: s.maxMessage}, options...)
}

// EvaluateFunction implements the service. The image is only a name: the pod runs a single function.
func (s *server) EvaluateFunction(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	result, err := s.evaluate(ctx, req)
	req.ResourceList = nil // only the answer is reserved from here on
	if err != nil {
		return nil, err
	}
	if err := evalserve.Of(ctx).Answer(ctx, int64(len(result.ResourceList)+len(result.Log))); err != nil {
		return nil, err
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: result.ResourceList, Log: result.Log}, nil
}

// evaluate runs the function. The gateway has validated the input.
func (s *server) evaluate(ctx context.Context, req *evaluator.EvaluateFunctionRequest) (function.Result, error) {
	ctx, cancel := function.NewTimeLimit(s.maxTime, maxTimeSetting).Context(ctx)
	defer cancel()
	return s.service.Evaluate(ctx, function.Evaluation{
		Image: req.GetImage(), Command: s.command, ResourceList: req.GetResourceList(), Caller: rpcserve.Caller(ctx),
	})
}

// command returns the command of a container of the function's image.
func command(cfg Config) fnproc.Command {
	path := findProgram(cfg.Entrypoint[0], lookup(cfg.Env, "PATH"))
	return fnproc.Command{Path: path, Args: cfg.Entrypoint[1:], Network: cfg.Network}
}

// findProgram searches a program in the directories of the image, as containers do. If it is missing, each evaluation
// reports that: the pod's caller reads the answer, but not the log of a pod that does not start.
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
