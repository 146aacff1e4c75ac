// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/guard"
)

// PolicyConfig is which calls are allowed. Without any of it, all are.
type PolicyConfig struct {
	// File is the file of the policy, followed.
	File string
	// Allow, Deny and RequireDigest are short forms of rules, which come before those of the file: patterns
	// of repositories, or name=pattern.
	Allow         []string
	Deny          []string
	RequireDigest bool `split_words:"true"`
}

// lists returns the short forms of rules.
func (c PolicyConfig) lists() policy.Lists {
	return policy.Lists{Allow: c.Allow, Deny: c.Deny, RequireDigest: c.RequireDigest}
}

// check adds the problems of the settings.
func (c PolicyConfig) check(checks *config.Checks) {
	const want = "a list of repository patterns, or of name=pattern"
	_, err := policy.Compile(nil, policy.Lists{Allow: c.Allow})
	checks.That(err == nil, "Policy.Allow", strings.Join(c.Allow, ","), want)
	_, err = policy.Compile(nil, policy.Lists{Deny: c.Deny})
	checks.That(err == nil, "Policy.Deny", strings.Join(c.Deny, ","), want)
}

// newGuard returns what asks the policy; nil if there is none.
func newGuard(cfg Config, services Services, frame program.Frame) (*guard.Guard, error) {
	c := cfg.Policy
	if c.File == "" && len(c.Allow) == 0 && len(c.Deny) == 0 && !c.RequireDigest {
		return nil, nil //nolint:nilnil // nil guards nothing
	}
	var resolver guard.Resolver
	if services.Digests != nil {
		resolver = services.Digests
	}
	return guard.New(guard.Config{File: c.File, Lists: c.lists(), Resolver: resolver, Telemetry: frame.Telemetry})
}

// guardedBy returns the evaluators with the policy asked before each; a nil guard changes nothing.
func guardedBy(g *guard.Guard, chain evaluation.Chain) evaluation.Chain {
	if g == nil {
		return chain
	}
	out := make(evaluation.Chain, 0, len(chain))
	for _, e := range chain {
		out = append(out, g.Wrap(e))
	}
	return out
}
