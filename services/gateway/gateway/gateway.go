// SPDX-License-Identifier: Apache-2.0

// Package gateway is the front door of the system: it takes evaluations from Porch
// and other callers and has each one done by the first evaluator that serves its
// image.
package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/listwire"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/execeval"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/frontdoor"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/history"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/imagepolicy"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/naming"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resolverclient"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/status"
)

// evaluators are those of a gateway, in their order, with what they know of tags and the tasks that they need.
type evaluators struct {
	chain evaluation.Chain
	tags  []naming.TagSource
	tasks []serve.Task
}

// newEvaluators returns the evaluators that are enabled.
func newEvaluators(cfg Config, services Services, frame program.Frame) (e evaluators, err error) {
	if cfg.Enabled(RuntimeExec) {
		exec, watch, err := newExec(cfg, services.Binaries, frame)
		if err != nil {
			return e, err
		}
		e.chain, e.tags, e.tasks = append(e.chain, exec), append(e.tags, exec), append(e.tasks, watch...)
	}
	// Results of local binaries are not remembered: their images have no digest.
	cache, err := newResultCache(cfg, services, frame)
	if err != nil {
		return e, err
	}
	if cfg.Enabled(RuntimeSandbox) && services.Sandboxes != nil {
		sandbox, err := newSandbox(cfg, services, frame)
		if err != nil {
			return e, err
		}
		e.chain, e.tasks = append(e.chain, cache.Wrap(sandbox)), append(e.tasks, sandbox.Maintain)
	}
	if cfg.Enabled(RuntimePod) && services.PodManager != nil {
		pod, keep, err := newPod(cfg, services, frame)
		if err != nil {
			return e, err
		}
		e.chain, e.tasks = append(e.chain, cache.Wrap(pod)), append(e.tasks, keep)
	}
	if services.ImageResolver != nil {
		e.tags = append(e.tags, resolverclient.TagSource{Resolver: services.ImageResolver})
	}
	return e, nil
}

// New returns the gateway as a part of a program.
func New(cfg Config, services Services, frame program.Frame) (serve.Component, error) {
	evaluate, err := newEvaluators(cfg, services, frame)
	if err != nil {
		return serve.Component{}, err
	}
	tasks := evaluate.tasks
	policy, err := imagepolicy.New(imagepolicy.Lists(cfg.Policy))
	if err != nil {
		return serve.Component{}, fmt.Errorf("set up the gateway: %w", err)
	}
	names := naming.Resolver{DefaultPrefix: cfg.DefaultImagePrefix, Tags: evaluate.tags, Policy: policy}
	handler, shown, err := newHandler(cfg, services, frame, frontdoor.Config{
		Names: names, Chain: evaluate.chain,
	})
	if err != nil {
		return serve.Component{}, fmt.Errorf("set up the gateway: %w", err)
	}
	endpoints, err := doors(cfg, handler, frame)
	if err != nil {
		return serve.Component{}, fmt.Errorf("set up the gateway: %w", err)
	}
	if cfg.StatusAddress != "" {
		endpoints = append(endpoints, statusPage(cfg, shown, services.PodManager, frame))
	}
	return serve.Component{Endpoints: endpoints, Tasks: tasks}, nil
}

// newExec returns the exec evaluator and the tasks that it needs. A nil source has no binaries.
func newExec(cfg Config, source binaries.Source, frame program.Frame) (*execeval.Evaluator, []serve.Task, error) {
	network, err := imagename.ParsePatterns(cfg.FunctionNetwork)
	if err != nil {
		return nil, nil, err
	}
	exec, err := execeval.New(execeval.Config{
		File:          cfg.Exec.Config,
		Functions:     cfg.Exec.Functions,
		DefaultPrefix: cfg.DefaultImagePrefix,
		Network:       network,
		Service: function.ServiceConfig{
			Program:         "gateway",
			Settings:        cfg.Exec.Settings,
			Confinement:     cfg.Confinement,
			Queue:           cfg.Exec.Queue,
			MaxMessageBytes: cfg.MaxMessageBytes,
			PreforkTotal:    cfg.Exec.PreforkTotal,
			Hidden:          slices.Concat(cfg.Secrets, []string{cfg.Exec.Functions}),
			Telemetry:       frame.Telemetry,
		},
	})
	if err != nil {
		return nil, nil, err
	}
	tasks := []serve.Task{exec.Watch, exec.Maintain}
	if source != nil {
		tasks = append(tasks, func(ctx context.Context) error {
			binaries.Follow(ctx, source, frame.Telemetry.Log, exec.Use)
			return nil
		})
	}
	return exec, tasks, nil
}

// newHandler returns the handler of the gateway's port, and what it shows of itself. The front door works
// with c, which newHandler completes.
func newHandler(
	cfg Config, services Services, frame program.Frame, c frontdoor.Config,
) (http.Handler, *status.Service, error) {
	remembered := history.New()
	c.History, c.Telemetry = remembered, frame.Telemetry
	c.MaxMessageBytes, c.MemoryBudgetBytes = int64(cfg.MaxMessageBytes), cfg.memoryBudget(cgroup.Container)
	c.MemoryBudgetWait = cfg.MemoryBudgetWait
	c.MemoryBudgetSetting = config.Variable("MemoryBudgetBytes")
	c.LogFunctionOutput, c.MaxLogRate = cfg.LogFunctionOutput, cfg.MaxLogRate
	c.MaxEvaluationTime = cfg.MaxEvaluationTime
	c.MaxTimeSetting = config.Variable("MaxEvaluationTime")
	door, err := frontdoor.New(c)
	if err != nil {
		return nil, nil, err
	}
	shown := status.New(remembered, door.Active(), hostname(), func() []string {
		warnings := frame.Identity.Details()
		if n := door.QueuedForMemory(); n > 0 {
			warnings = append(warnings, fmt.Sprintf("the memory budget is used up, %d requests wait for it: raise %s",
				n, c.MemoryBudgetSetting))
		}
		return warnings
	})
	rpc := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Hosts: cfg.StatusHosts}
	served := []rpcserve.Service{{
		Name:            evaluatorconnect.FunctionEvaluatorName,
		MaxRequestBytes: cfg.MaxMessageBytes, MaxResponseBytes: cfg.MaxMessageBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			options = append(options, connect.WithInterceptors(function.WordEarlyDeadline()))
			path, handler := listwire.NewHandler(door, int64(cfg.MaxMessageBytes), options...)
			return path, door.Bounded(handler)
		},
	}}
	shows := newQueries()
	served = append(served, statusService(shown, shows))
	if services.PodManager != nil {
		served = append(served, pools(cfg, services.PodManager, shows, frame))
	}
	handler, err := rpcserve.NewHandler(rpc, served...)
	return handler, shown, err
}
