// SPDX-License-Identifier: Apache-2.0

// Package gateway evaluates functions for Porch and other callers. A gateway has up to three evaluators: for local
// binaries, for sandboxes and for pods. It uses the first evaluator that serves the function's image.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhandler"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/execeval"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/imagepolicy"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/nameresolver"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podeval"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandboxeval"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/status"
)

// maxLogRate is the maximum number of log lines about evaluations per second. It applies to successes and failures
// separately, so that many successes do not suppress the lines of failures.
const maxLogRate = 10

// maxConnectionAge is the age at which the gateway closes a caller's connection, plus or minus up to 10 %. The
// caller then connects again, possibly to another replica, so that the load spreads over all replicas.
const maxConnectionAge = 5 * time.Minute

// New sets up a gateway. The returned component contains the gateway's ports and background tasks.
func New(cfg Config, services Services, frame servermain.Frame) (serve.Component, error) {
	component, err := newComponent(cfg, services, frame)
	if err != nil {
		return serve.Component{}, fmt.Errorf("set up the gateway: %w", err)
	}
	return component, nil
}

func newComponent(cfg Config, services Services, frame servermain.Frame) (serve.Component, error) {
	evaluators, err := newEvaluators(cfg, services, frame)
	if err != nil {
		return serve.Component{}, err
	}
	policy, err := imagepolicy.New(imagepolicy.Lists(cfg.Policy))
	if err != nil {
		return serve.Component{}, err
	}
	ended := evalhistory.New()
	requests := evalhandler.New(evalhandler.Config{
		Names: nameresolver.Resolver{
			DefaultPrefix: cfg.DefaultImagePrefix, Tags: evaluators.tagSources(services), Policy: policy,
		},
		Chain:               evaluators.newChain(),
		MaxMessageBytes:     int64(cfg.MaxMessageBytes),
		MemoryBudgetBytes:   cfg.memoryBudget(cgroup.Container),
		MemoryBudgetSetting: config.Variable("MemoryBudgetBytes"),
		LogFunctionOutput:   cfg.LogFunctionOutput,
		MaxLogRate:          maxLogRate,
		MaxEvaluationTime:   cfg.MaxEvaluationTime,
		MaxTimeSetting:      config.Variable("MaxEvaluationTime"),
		Telemetry:           frame.Telemetry,
		History:             ended,
	})
	warnings := func() []string {
		warnings := frame.Identity.Details()
		if n := requests.QueuedForMemory(); n > 0 {
			warnings = append(warnings, fmt.Sprintf("the memory budget is used up, %d requests wait for it: raise %s",
				n, config.Variable("MemoryBudgetBytes")))
		}
		return warnings
	}
	images := func() []string { return nil }
	if evaluators.exec != nil {
		images = evaluators.exec.Images
	}
	shown := status.New(ended, requests.Active(), hostname(), warnings, images)
	handler := newHandler(cfg, services.PodManager, frame, requests, shown)
	endpoints, err := newEndpoints(cfg, handler, frame)
	if err != nil {
		return serve.Component{}, err
	}
	if cfg.StatusAddress != "" {
		endpoints = append(endpoints, statusPage(cfg, shown, services.PodManager, frame))
	}
	return serve.Component{Endpoints: endpoints, Tasks: listTasks(evaluators, services, frame)}, nil
}

// listTasks returns a gateway's background tasks, such as following changes of the configuration file.
func listTasks(e evaluators, services Services, frame servermain.Frame) (tasks []serve.Task) {
	if e.exec != nil {
		tasks = append(tasks, e.exec.Watch, e.exec.Maintain)
	}
	if e.exec != nil && services.Binaries != nil {
		tasks = append(tasks, func(ctx context.Context) error {
			binaries.Follow(ctx, services.Binaries, frame.Telemetry.Log, e.exec.Use)
			return nil
		})
	}
	if e.sandbox != nil {
		tasks = append(tasks, e.sandbox.Maintain)
	}
	if e.pod != nil {
		tasks = append(tasks, e.conns.Run)
	}
	return tasks
}

// evaluators contains the evaluators for local binaries, for sandboxes and for pods. An evaluator is nil if it is
// disabled.
type evaluators struct {
	exec    *execeval.Evaluator
	sandbox *sandboxeval.Evaluator
	pod     *podeval.Evaluator
	conns   *podconn.Pool      // connections of the pod evaluator
	cache   *resultcache.Cache // nil if no results are cached
}

func newEvaluators(cfg Config, services Services, frame servermain.Frame) (e evaluators, err error) {
	if cfg.Enabled(RuntimeExec) {
		if e.exec, err = newExec(cfg, frame); err != nil {
			return e, err
		}
	}
	if e.cache, err = newResultCache(cfg, services, frame); err != nil {
		return e, err
	}
	if cfg.Enabled(RuntimeSandbox) && services.Sandboxes != nil {
		if e.sandbox, err = newSandbox(cfg, services, frame); err != nil {
			return e, err
		}
	}
	if cfg.Enabled(RuntimePod) && services.PodManager != nil {
		e.conns = newPodConns(cfg, services, frame)
		e.pod = podeval.New(podeval.Config{
			Leases: services.PodManager, Conns: e.conns, MaxRetries: cfg.Pod.MaxRetries,
			ConnectTimeout: connectTimeout, Telemetry: frame.Telemetry,
		})
	}
	return e, nil
}

// newChain returns the enabled evaluators in order of preference. Results of local binaries are not cached. This is
// because a cache key requires the image's digest, and a local binary has no digest.
func (e evaluators) newChain() (chain evaluation.Chain) {
	if e.exec != nil {
		chain = append(chain, e.exec)
	}
	if e.sandbox != nil {
		chain = append(chain, e.cache.Wrap(e.sandbox))
	}
	if e.pod != nil {
		chain = append(chain, e.cache.Wrap(e.pod))
	}
	return chain
}

// tagSources returns the sources in which the gateway searches for a tag that satisfies a version constraint such as
// ">=1.2". The gateway searches the tags of local binaries first, and then the registries.
func (e evaluators) tagSources(services Services) (tags []nameresolver.TagSource) {
	if e.exec != nil {
		tags = append(tags, e.exec)
	}
	if services.ImageResolver != nil {
		tags = append(tags, registryTags{services.ImageResolver})
	}
	return tags
}

// registryTags is a [nameresolver.TagSource] that lists the tags of a repository in its registry.
type registryTags struct {
	resolver imageresolverv1connect.ImageResolverServiceClient
}

// Tags implements [nameresolver.TagSource]. If the registry does not contain the repository, Tags returns the
// registry's error.
func (r registryTags) Tags(ctx context.Context, repository string) (tags []string, known bool, err error) {
	resp, err := r.resolver.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
	return resp.GetTags(), err == nil, err
}

func newExec(cfg Config, frame servermain.Frame) (*execeval.Evaluator, error) {
	network, err := imagename.ParsePatterns(cfg.FunctionNetwork)
	if err != nil {
		return nil, err
	}
	return execeval.New(execeval.Config{
		File:          cfg.Exec.Config,
		Functions:     cfg.Exec.Functions,
		DefaultPrefix: cfg.DefaultImagePrefix,
		Network:       network,
		Queue:         cmp.Or(cfg.Exec.Queue, defaultExecQueue),
		Service: function.ServiceConfig{
			Program:         "gateway",
			Settings:        cfg.Exec.Settings,
			Confinement:     cfg.Confinement,
			MaxMessageBytes: int(cfg.MaxMessageBytes),
			PreforkTotal:    cmp.Or(cfg.Exec.PreforkTotal, defaultPreforkTotal),
			Hidden:          slices.Concat(cfg.Secrets, []string{cfg.Exec.Functions}),
			Telemetry:       frame.Telemetry,
		},
	})
}

// newHandler returns the HTTP handler of the ports for callers. It evaluates functions, and returns the gateway's
// status. Unless pools is nil, it also lists the function pods.
func newHandler(
	cfg Config, pools lease.Manager, frame servermain.Frame, requests *evalhandler.Handler, shown *status.Service,
) *rpcserve.Handler {
	queries := newQueries()
	services := []rpcserve.Service{{
		Name:            evaluatorconnect.FunctionEvaluatorName,
		MaxRequestBytes: int(cfg.MaxMessageBytes), MaxResponseBytes: int(cfg.MaxMessageBytes),
		Handler: requests.Serve,
	}, statusService(shown, queries)}
	if pools != nil {
		services = append(services, poolService(cfg, pools, queries, frame))
	}
	return rpcserve.NewHandler(
		rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Hosts: cfg.StatusHosts}, services...)
}

// newEndpoints returns the gateway's enabled ports. The port without TLS serves all callers, and the port with TLS
// serves callers with a client certificate.
func newEndpoints(cfg Config, handler *rpcserve.Handler, frame servermain.Frame) ([]serve.Endpoint, error) {
	plain := serve.Endpoint{
		Name: "evaluator", Address: cfg.Address, Handler: handler, MaxConnectionAge: maxConnectionAge,
		MaxConnections: cfg.MaxConnections, MaxConnectionsPerPeer: cfg.MaxConnections / 4,
	}
	if cfg.TLSAddress == "" {
		return []serve.Endpoint{plain}, nil
	}
	if frame.Identity == nil {
		return nil, errors.New("a port with TLS needs a certificate: set FNR_TLS_DIRECTORY")
	}
	access, err := rpcserve.Callers(frame.Identity, cfg.Callers)
	if err != nil {
		return nil, err
	}
	secure := plain
	secure.Name = "evaluator with TLS"
	secure.Address = cfg.TLSAddress
	secure.TLS = frame.Identity.Server()
	secure.Handler = handler.Restrict(secure.Name, access)
	if cfg.Address == off {
		return []serve.Endpoint{secure}, nil
	}
	return []serve.Endpoint{plain, secure}, nil
}
