// SPDX-License-Identifier: Apache-2.0

// Package imageresolver resolves image references to digests and to the commands of their containers. Only this package
// connects to image registries. Other services thus need no credentials, certificates or cache for registries, and
// registries receive no requests from their replicas. The service stores nothing on disk, so any number of replicas may
// run. Programs that run images without pods also use a [Store], which keeps images on disk.
package imageresolver

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"

	"connectrpc.com/connect"
	dockerconfig "github.com/docker/cli/cli/config"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registrytls"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/resolver"
)

const (
	// maxRequestBytes bounds the size of requests. They contain only the name of an image and a tag constraint.
	maxRequestBytes = 64 << 10
	// maxResponseBytes bounds the size of responses. Lists of tags are the largest responses.
	maxResponseBytes = 32 << 20
)

// Resolver resolves image references to digests for callers in the same process. Each error has a class that package
// fault defines, such as fault.Unavailable. Callers share responses and must not modify them.
type Resolver struct {
	*resolver.Resolver
	tasks    []serve.Task
	registry *registry.Client
}

// Callers in the same process use a Resolver instead of a client of a remote image-resolver.
var _ imageresolverv1connect.ImageResolverServiceClient = (*Resolver)(nil)

// Tasks returns tasks that callers must run while they use the resolver, such as watching the credentials.
func (r *Resolver) Tasks() []serve.Task { return r.tasks }

// New returns the image-resolver as a component of a program: a server at cfg.Address and background tasks.
func New(cfg Config, frame servermain.Frame) (serve.Component, error) {
	r, err := NewResolver(cfg, frame)
	if err != nil {
		return serve.Component{}, err
	}
	access, err := rpcserve.Callers(frame.Identity, cfg.Callers)
	if err != nil {
		return serve.Component{}, fmt.Errorf("set up the image-resolver: %w", err)
	}
	options := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access, Port: "image-resolver"}
	handler := rpcserve.NewHandler(options, rpcserve.Service{
		Name:            imageresolverv1connect.ImageResolverServiceName,
		MaxRequestBytes: maxRequestBytes, MaxResponseBytes: maxResponseBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return imageresolverv1connect.NewImageResolverServiceHandler(r, options...)
		},
	})
	return serve.Component{
		Endpoints: []serve.Endpoint{{
			Name: "image-resolver", Address: cfg.Address, Handler: handler, TLS: frame.Identity.Server(),
		}},
		Tasks: r.Tasks(),
	}, nil
}

// NewResolver returns a resolver for callers in the same process. They must run the tasks of [Resolver.Tasks].
func NewResolver(cfg Config, frame servermain.Frame) (*Resolver, error) {
	r, err := newResolver(cfg, frame)
	if err != nil {
		return nil, fmt.Errorf("set up the image-resolver: %w", err)
	}
	return r, nil
}

// newResolver creates the resolver and its client for registries, with the background tasks of both.
func newResolver(cfg Config, frame servermain.Frame) (*Resolver, error) {
	var core *resolver.Resolver
	changed := func() { core.ForgetFailures() } // only the tasks call this function, after core is set
	log := frame.Telemetry.Log
	trusted, err := registrytls.New(
		registrytls.Config{Directory: cfg.TLSSecretPath, Directories: cfg.tlsDirectories(), Log: log, Changed: changed},
	)
	if err != nil {
		return nil, err
	}
	creds, err := credentials.New(credentials.Config{Files: cfg.authFiles(), Log: log, Changed: changed})
	if err != nil {
		return nil, err
	}
	client := registry.New(registry.Config{
		Transport: trusted, Credentials: creds, Insecure: cfg.InsecureRegistries, Mirrors: cfg.Mirrors,
		Local:      slices.AppendSeq(slices.Clone(cfg.InternalRegistries), maps.Keys(cfg.RegistryTLSPaths)),
		PublicOnly: len(cfg.InternalRegistries) > 0 && !slices.Contains(cfg.InternalRegistries, "*"),
		Concurrent: 64,
		Telemetry:  frame.Telemetry,
	})
	platforms, err := cfg.preferredPlatforms()
	if err != nil {
		return nil, err
	}
	core = resolver.New(resolver.Config{
		DefaultPrefix: cfg.DefaultImagePrefix, Platforms: platforms, Registry: client,
		MaxBytes: cacheBytes, Tags: cfg.tagLifetime(), Telemetry: frame.Telemetry,
	})
	// These tasks run concurrently. They refresh the cache and watch the credentials and certificates for changes.
	tasks := []serve.Task{core.Run, creds.Run, trusted.Run}
	return &Resolver{Resolver: core, tasks: tasks, registry: client}, nil
}

// authFiles returns the paths of docker configuration files. The first file has the highest priority.
func (c *Config) authFiles() []string {
	var files []string
	if c.AuthSecretPath != "" {
		files = append(files, c.AuthSecretPath)
	}
	return append(files, filepath.Join(dockerconfig.Dir(), dockerconfig.ConfigFileName))
}

func (c *Config) tlsDirectories() map[string]string {
	directories := make(map[string]string)
	for host, paths := range c.RegistryTLSPaths {
		directories[host] = paths[0]
	}
	return directories
}
