// SPDX-License-Identifier: Apache-2.0

// Package caller carries the identity of a caller from the edge, which verifies it, to what decides by it.
package caller

import (
	"context"
	"slices"
)

// Kind is how a caller proved its identity.
type Kind string

// The kinds of identities.
const (
	// Anonymous is a caller that proved nothing.
	Anonymous Kind = ""
	// Certificate is a caller with a client certificate.
	Certificate Kind = "certificate"
	// Token is a caller with a token that Kubernetes issued.
	Token Kind = "token"
)

// Identity is who makes a call. The zero Identity is an anonymous caller.
type Identity struct {
	// ID is the name that was verified: a SPIFFE URI, or the user name in Kubernetes, such as
	// "system:serviceaccount:porch-system:porch-server".
	ID string
	// Groups are the caller's groups in Kubernetes.
	Groups []string
	// Kind is how the caller proved its identity.
	Kind Kind
}

// Bounds of an identity. An edge rejects callers whose identity exceeds them: identities get into logs
// and into conditions of policies.
const (
	MaxIDBytes    = 2 << 10
	MaxGroups     = 256
	MaxGroupBytes = 256
)

// Bounded reports whether the identity is within the bounds.
func (i Identity) Bounded() bool {
	return len(i.ID) <= MaxIDBytes && len(i.Groups) <= MaxGroups &&
		!slices.ContainsFunc(i.Groups, func(group string) bool { return len(group) > MaxGroupBytes })
}

// key is where a context has the identity.
type key struct{}

// With returns a context of a call that the identity makes. Only an edge that has verified the identity
// calls it.
func With(ctx context.Context, identity Identity) context.Context {
	return context.WithValue(ctx, key{}, identity)
}

// From returns who makes the call that ctx belongs to; the zero Identity if that was not proved.
func From(ctx context.Context) Identity {
	identity, _ := ctx.Value(key{}).(Identity)
	return identity
}
