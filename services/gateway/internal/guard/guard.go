// SPDX-License-Identifier: Apache-2.0

// Package guard has the policy decide about each evaluation and about each list of tags: it follows the
// file of the policy, asks it, and applies its limits.
package guard

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/filewatch"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// Resolver knows what images run.
type Resolver interface {
	// ResolveImage returns an image's digest. Its errors are classified.
	ResolveImage(ctx context.Context, req *imageresolverv1.ResolveImageRequest) (
		*imageresolverv1.ResolveImageResponse, error)
}

// Config is what a guard works with.
type Config struct {
	// File is the file of the policy, read again whenever it changes; empty if there is none.
	File string
	// Lists are short forms of rules.
	Lists policy.Lists
	// Resolver finds the digests of images if a rule depends on them; nil if there is none.
	Resolver  Resolver
	Telemetry *telemetry.Telemetry
}

// Guard asks the policy.
type Guard struct {
	cfg Config
	log *slog.Logger
	// content is what was read of the files of the policy; read reports whether it could be read.
	content []byte
	read    bool
	policy  atomic.Pointer[policy.Policy]
	limits  limits
	metrics *metrics
}

// New returns a guard with the policy as it is now. A file that is missing or broken is an error: later, it
// changes nothing.
func New(cfg Config) (*Guard, error) {
	g := &Guard{cfg: cfg, log: cfg.Telemetry.Log, limits: limits{rules: map[string]*limited{}}}
	var err error
	if g.metrics, err = newMetrics(cfg.Telemetry.Meters, g.rules); err != nil {
		return nil, err
	}
	if cfg.File == "" {
		return g, g.load(nil)
	}
	file, content, err := policy.Read(cfg.File)
	if content == nil {
		return nil, fmt.Errorf("read the policy: %w: give the file, or unset its setting", err)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", cfg.File, err)
	}
	g.content, g.read = content, true
	return g, g.load(file)
}

// load puts the policy of a file in force.
func (g *Guard) load(file *policy.File) error {
	p, err := policy.Compile(file, g.cfg.Lists)
	if err != nil {
		return fmt.Errorf("policy %s: %w", g.cfg.File, err)
	}
	for _, warning := range p.Warnings() {
		g.log.Warn("policy has a rule that never matches", "file", g.cfg.File, "warning", warning)
	}
	if p.UsesDigest() && g.cfg.Resolver == nil {
		g.log.Warn("policy uses image.digest: images named by tag are rejected without FNR_IMAGE_RESOLVER",
			"file", g.cfg.File)
	}
	if p.UsesSigners() && g.cfg.Resolver == nil {
		g.log.Warn("policy requires signatures, which nothing verifies: set FNR_IMAGE_RESOLVER", "file", g.cfg.File)
	}
	g.limits.keep(p.Rules())
	g.policy.Store(p)
	g.metrics.inForce.Store(true)
	if g.cfg.File != "" {
		g.log.Info("policy in force", "file", g.cfg.File, "rules", len(file.Rules), "default", file.Default)
	}
	return nil
}

// rules returns how many rules are in force.
func (g *Guard) rules() int64 { return int64(max(len(g.policy.Load().Rules())-1, 0)) }

// Watch follows the file until ctx ends.
func (g *Guard) Watch(ctx context.Context) error {
	if g.cfg.File == "" {
		return nil
	}
	filewatch.WatchDirectory(ctx, g.log, filepath.Dir(g.cfg.File), func() { g.look(ctx) })
	return nil
}

// look reads the files of the policy, the keys beside it included, and takes what has changed. A file that is
// broken or gone changes nothing.
func (g *Guard) look(ctx context.Context) {
	file, content, err := policy.Read(g.cfg.File)
	read := content != nil
	if read == g.read && bytes.Equal(content, g.content) {
		return
	}
	g.content, g.read = content, read
	if err == nil {
		err = g.load(file)
	}
	if err != nil {
		g.metrics.inForce.Store(false)
		g.metrics.failures.Add(ctx, 1)
		g.log.ErrorContext(ctx, "policy not changed: the last good one stays in force",
			"file", g.cfg.File, "error", err)
	}
}

// Permit returns nil if the caller may have the tags of a repository listed.
func (g *Guard) Permit(ctx context.Context, repository string) error {
	d := g.policy.Load().Decide(policy.Facts{
		Caller: caller.From(ctx), Address: rpcserve.Caller(ctx), Operation: policy.ListTags,
		Image: imagename.Name{Repository: repository},
	})
	g.metrics.decided(ctx, d)
	if d.Allow {
		return nil
	}
	return denied("the list of tags of "+repository, d)
}

// denied returns the error for a caller: what names the request that the decision denies.
func denied(what string, d policy.Decision) error {
	err := fault.New(fault.Denied, "%s is rejected by the rule %q of the policy", what, d.Rule)
	if d.Reason != "" {
		err = fault.New(fault.Denied, "%w: %s", err, d.Reason)
	}
	return &evaluation.DeniedError{Rule: d.Rule, Reason: err}
}
