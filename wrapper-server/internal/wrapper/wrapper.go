// SPDX-License-Identifier: Apache-2.0

// Package wrapper implements the wrapper server, which serves a single function. For each evaluation, it runs the
// function's entrypoint and returns the output.
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
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
)

// New returns the wrapper server as a component of a program.
func New(cfg Config, frame servermain.Frame) (serve.Component, error) {
	identity, access, err := cfg.TLS.newIdentity(frame)
	if err != nil {
		return serve.Component{}, fmt.Errorf("set up the certificate: %w", err)
	}
	pod, err := newPod(cfg, frame)
	if err != nil {
		return serve.Component{}, err
	}
	s := &server{
		command: command(cfg), pod: pod, maxMessage: int64(cfg.MaxRequestBodySize),
		maxTime: cfg.MaxEvaluationTime,
		budget:  evalserve.NewBudget(evalserve.DefaultBytes(cgroup.Container, int(cfg.MaxRequestBodySize)), windows, ""),
	}
	rpc := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access, Port: "evaluator"}
	handler := rpcserve.NewHandler(rpc, rpcserve.Service{
		Name: evaluatorconnect.FunctionEvaluatorName, Handler: s.newHandler,
		MaxRequestBytes: int(cfg.MaxRequestBodySize), MaxResponseBytes: int(cfg.MaxRequestBodySize),
	})
	return serve.Component{
		Endpoints: []serve.Endpoint{{
			Name: "evaluator", Address: ":" + strconv.Itoa(cfg.Port), Handler: handler,
			Windows: windows, MaxConnections: maxConnections, MaxConnectionsPerPeer: maxConnectionsPerPeer,
			TLS: identity.Server(),
		}},
		Tasks: []serve.Task{s.keepPrepared},
	}, nil
}

// windows are the HTTP/2 flow-control windows of connections. They are larger than in other servers. Otherwise the
// transfer of a resource list of several megabytes would need dozens of round trips between nodes. To limit memory, the
// server permits fewer connections. A few are enough, because only gateways and health checks connect to a pod.
var windows = serve.Windows{Request: 4 * serve.ReceiveWindow, Connection: serve.MaxWindow}

const (
	maxConnections        = serve.DefaultMaxConnections / 4
	maxConnectionsPerPeer = serve.DefaultMaxConnectionsPerPeer / 4
)

func newPod(cfg Config, frame servermain.Frame) (*function.Pod, error) {
	return function.NewPod(function.ServiceConfig{
		Program:         "wrapper-server",
		Settings:        cfg.Settings,
		Confinement:     cfg.Confinement,
		MaxMessageBytes: int(cfg.MaxRequestBodySize),
		Env:             cfg.Env,
		PreforkTotal:    cfg.Prefork,
		Hidden:          hiddenPaths(cfg.Network),
		Shared:          cfg.Shared,
		Wording:         function.WrapperWording,
		FlattenLog:      cfg.FlattenLog,
		Telemetry:       frame.Telemetry,
	})
}

// tokens is the mount path of service account tokens. Only a pod with a template from a user can contain a token.
const tokens = "/var/run/secrets/kubernetes.io" //nolint:gosec // a path, no credential

// hiddenPaths returns the paths that the function must not read. Only a function that may use the network may read
// a service account token, because a token is useless without network.
func hiddenPaths(network bool) []string {
	if network {
		return nil
	}
	return []string{tokens}
}

// server implements Porch's FunctionEvaluator service. Each evaluation runs the command of the pod's function.
type server struct {
	command    fnproc.Command
	pod        *function.Pod
	maxTime    time.Duration
	maxMessage int64
	budget     *evalserve.Budget
}

// maxTimeSetting names the settings that limit the evaluation time, for the error of an evaluation over the limit.
const maxTimeSetting = "the pod-manager's setting FNR_MAX_EVALUATION_TIME (" +
	"without a pod-manager, the wrapper server's --max-evaluation-time), or the function's maxEvaluationTime"

// keepPrepared starts processes of the function in advance, for later evaluations. It does not wait for the first
// evaluation, because a pod is created only if evaluations are expected.
func (s *server) keepPrepared(ctx context.Context) error {
	s.pod.Prepare(s.command)
	return s.pod.Maintain(ctx)
}

func (s *server) newHandler(options ...connect.HandlerOption) (path string, handler http.Handler) {
	return evalserve.NewHandler(evalserve.Config{Service: s, Budget: s.budget, MaxMessageBytes: s.maxMessage}, options...)
}

// EvaluateFunction implements Porch's FunctionEvaluator service. It always runs the pod's function. It uses the image
// name in the request only in the texts of errors and logs.
func (s *server) EvaluateFunction(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	limited, cancel := function.NewTimeLimit(s.maxTime, maxTimeSetting).Context(ctx)
	defer cancel()
	result, err := s.pod.Evaluate(limited, function.Evaluation{ // the gateway has validated the input
		Image: req.GetImage(), Command: s.command, ResourceList: req.GetResourceList(),
	})
	req.ResourceList = nil // frees the memory of the input: from here on, only the answer uses the memory budget
	if err != nil {
		return nil, err
	}
	if err := evalserve.Of(ctx).Answer(ctx, int64(len(result.ResourceList)+len(result.Log))); err != nil {
		return nil, err
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: result.ResourceList, Log: result.Log}, nil
}

// command returns the command that starts the function. A container of the function's image would run the same command.
func command(cfg Config) fnproc.Command {
	path := findProgram(cfg.Entrypoint[0], lookup(cfg.Env, "PATH"))
	return fnproc.Command{Path: path, Args: cfg.Entrypoint[1:], Network: cfg.Network}
}

// findProgram searches the image's PATH for a program, as a container does. If the program is missing, findProgram
// returns the name. The server then starts nevertheless, and each evaluation fails with an error. Callers see this
// error, but they would not see the log of a pod that does not start.
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
