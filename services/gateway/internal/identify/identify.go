// SPDX-License-Identifier: Apache-2.0

// Package identify finds out who calls the gateway: by a client certificate, or by a token of Kubernetes.
package identify

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// Tokens knows whose tokens are.
type Tokens interface {
	Identify(ctx context.Context, peer, token string) (caller.Identity, error)
}

// Callers are who may call.
type Callers struct {
	// IDs match those with a certificate.
	IDs mtls.Patterns
	// Users are the names of those with a token. One with "*" at its end matches all that begin so.
	Users []string
	// Tokens knows whose a token is; nil accepts none.
	Tokens Tokens
}

// Access returns the access of callers. The context of their requests has their identity.
func Access(callers Callers) rpcserve.Access {
	return func(r *http.Request) (context.Context, error) {
		identity, err := callers.find(r)
		if err != nil {
			return nil, err
		}
		return caller.With(r.Context(), identity), nil
	}
}

func (c Callers) find(r *http.Request) (caller.Identity, error) {
	if r.TLS == nil {
		return caller.Identity{}, rpcserve.Unauthenticated("this port requires TLS")
	}
	if id := mtls.Peer(r.TLS); id != (mtls.ID{}) {
		if !c.IDs.Match(id) {
			return caller.Identity{}, fault.New(fault.Denied, "%s may not call this gateway", id)
		}
		return caller.Identity{ID: id.String(), Kind: caller.Certificate}, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		return caller.Identity{}, rpcserve.Unauthenticated("this port requires a valid client certificate or a token")
	}
	if c.Tokens == nil {
		return caller.Identity{}, rpcserve.Unauthenticated("this port accepts no tokens: show a client certificate")
	}
	identity, err := c.Tokens.Identify(r.Context(), serve.Peer(r.RemoteAddr), token)
	switch {
	case fault.Of(err) == fault.Denied:
		return caller.Identity{}, rpcserve.Unauthenticated(err.Error())
	case err == nil && !c.permits(identity.ID):
		return caller.Identity{}, fault.New(fault.Denied, "%s may not call this gateway", identity.ID)
	}
	return identity, err
}

// permits reports whether a user may call. One that is named like a program with a certificate may not: policies
// have both in caller.id.
func (c Callers) permits(name string) bool {
	if strings.HasPrefix(strings.ToLower(name), "spiffe:") {
		return false
	}
	return slices.ContainsFunc(c.Users, func(user string) bool {
		beginning, all := strings.CutSuffix(user, "*")
		return name == user || all && strings.HasPrefix(name, beginning)
	})
}
