// SPDX-License-Identifier: Apache-2.0

// Package dialguard keeps this service from connecting to local addresses: those of this
// machine, of its link, and of cloud metadata services. Callers choose image names, and
// registries choose redirects and token servers, so both could otherwise make this service send
// requests there. Private addresses are not local: registries in clusters have them. A request may be restricted to
// public addresses too.
package dialguard

import (
	"context"
	"net/netip"
)

// Error is a request to a local address that is rejected.
type Error struct {
	// Host is the host of the request, by name or by address.
	Host string
}

func (e *Error) Error() string {
	return e.Host + " is a local address, or resolves to one"
}

// restricted is the context key of requests that must not reach local addresses.
type restricted struct{}

// restriction is the value of the key.
type restriction struct {
	host    string
	private bool // reports whether private addresses are permitted
}

// Restrict returns ctx for a request that must not reach a local address, nor a private one unless those are permitted.
// The error names the request's host.
func Restrict(ctx context.Context, host string, private bool) context.Context {
	return context.WithValue(ctx, restricted{}, restriction{host, private})
}

// Lift returns ctx without the restriction. A request that a proxy forwards needs it: the
// connection leads to the proxy, which may be local.
func Lift(ctx context.Context) context.Context {
	return context.WithValue(ctx, restricted{}, nil)
}

// Check returns an [Error] if ctx does not permit address, as IP:port. It has to
// be called with the address that the connection is made to, after names are resolved.
func Check(ctx context.Context, address string) error {
	r, ok := ctx.Value(restricted{}).(restriction)
	if !ok {
		return nil
	}
	found, err := netip.ParseAddrPort(address)
	if err == nil && !isLocal(found.Addr()) && (r.private || !isPrivate(found.Addr())) {
		return nil
	}
	return &Error{Host: r.host}
}
