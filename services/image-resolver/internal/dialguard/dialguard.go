// SPDX-License-Identifier: Apache-2.0

// Package dialguard keeps this service from connecting to local addresses: addresses of this machine, of its link,
// and of cloud metadata services. Callers choose image names, and registries choose redirects and token servers, so
// both could otherwise make this service send requests there. Private addresses do not count as local, because
// registries in clusters use them. A request may also be restricted to public addresses.
package dialguard

import (
	"context"
	"net/netip"
)

// Error reports a rejected request to a local address.
type Error struct {
	// Host is the host of the request, by name or by address.
	Host string
}

func (e *Error) Error() string {
	return e.Host + " is a local address, or resolves to one"
}

// restrictionKey is the context key of requests that must not reach local addresses.
type restrictionKey struct{}

// Restriction forbids a request to reach local addresses and, unless Private is set, private addresses.
type Restriction struct {
	// Host is the host of the request, for errors.
	Host string
	// Private is true if private addresses are permitted.
	Private bool
	// OnPrivate is called before a connection to a private address. It may be nil.
	OnPrivate func()
}

// Restrict returns ctx for a request with a restriction.
func Restrict(ctx context.Context, r Restriction) context.Context {
	return context.WithValue(ctx, restrictionKey{}, r)
}

// Lift returns ctx without the restriction. Requests through a proxy require this, because their connection leads to
// the proxy, which may be local.
func Lift(ctx context.Context) context.Context {
	return context.WithValue(ctx, restrictionKey{}, nil)
}

// Check returns an [Error] if ctx does not permit address, as IP:port. Callers must pass the resolved address of the
// connection.
func Check(ctx context.Context, address string) error {
	r, ok := ctx.Value(restrictionKey{}).(Restriction)
	if !ok {
		return nil
	}
	found, err := netip.ParseAddrPort(address)
	private := isPrivate(found.Addr())
	if err != nil || isLocal(found.Addr()) || (private && !r.Private) {
		return &Error{Host: r.Host}
	}
	if private && r.OnPrivate != nil {
		r.OnPrivate()
	}
	return nil
}
