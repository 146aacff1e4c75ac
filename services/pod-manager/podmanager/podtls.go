// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// podTLS keeps what function pods need to prove who they are, and to accept the programs that may lease them.
type podTLS struct {
	identity *mtls.Identity
	callers  []string // none for this program itself
	use      func(*podspec.TLS)
	changed  chan struct{} // with a capacity of one
	// known closes when use was called for the first time, or never will be.
	known chan struct{}
}

// podTLS returns what keeps it, as long as this program has an identity.
func (c *Config) podTLS(identity *mtls.Identity, callers []string, use func(*podspec.TLS)) *podTLS {
	p := &podTLS{
		callers: callers, use: use, changed: make(chan struct{}, 1), known: make(chan struct{}),
	}
	if identity == nil || !c.PodTLS {
		close(p.known)
		return p
	}
	p.identity = identity
	identity.OnChange(func() {
		select {
		case p.changed <- struct{}{}:
		default: // that it has changed is known already
		}
	})
	return p
}

// Run follows the certificate of this program and the authorities that it trusts, until ctx ends.
func (p *podTLS) Run(ctx context.Context) error {
	for first := true; ; first = false {
		select {
		case <-p.changed:
		case <-ctx.Done():
			return nil
		}
		p.use(p.current())
		if first {
			close(p.known)
		}
	}
}

// current is what pods get that are created now.
func (p *podTLS) current() *podspec.TLS {
	own, callers := p.identity.ID(), p.callers
	if len(callers) == 0 {
		callers = []string{own.String()}
	}
	return &podspec.TLS{
		IDs: own.Sibling("function-pod").String(), Authorities: p.identity.Authorities(), Callers: callers,
		Permissive: p.identity.Permissive(),
	}
}
