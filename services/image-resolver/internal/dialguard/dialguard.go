// SPDX-License-Identifier: Apache-2.0

// Package dialguard prevents connections from this service to local addresses: addresses of this machine,
// link-local addresses, and addresses of cloud metadata services. Otherwise, callers could reach these addresses by
// image names, and registries could reach them by redirects. Private addresses do not count as local, because
// registries in clusters use them, but a [Restriction] can also forbid private addresses.
package dialguard

import (
	"context"
	"net/netip"
)

// Error reports a request that [Check] rejected because of its address.
type Error struct {
	// Host is the host of the request, as a name or an IP address.
	Host string
}

func (e *Error) Error() string {
	return e.Host + " is a local address, or resolves to one"
}

// restrictionKey is the context key of a request's [Restriction].
type restrictionKey struct{}

// Restriction forbids a request to connect to local addresses, and to private addresses unless Private is true.
type Restriction struct {
	// Host is the host of the request, for error messages.
	Host string
	// Private is true if private addresses are permitted.
	Private bool
	// OnPrivate is called before the request connects to a private address. It may be nil.
	OnPrivate func()
}

// Restrict returns a copy of ctx with the restriction r. [Check] applies r to requests with this context.
func Restrict(ctx context.Context, r Restriction) context.Context {
	return context.WithValue(ctx, restrictionKey{}, r)
}

// Lift returns a copy of ctx without its [Restriction]. Requests through a proxy need this, because they connect to
// the proxy, and the proxy may be at a local address.
func Lift(ctx context.Context) context.Context {
	return context.WithValue(ctx, restrictionKey{}, nil)
}

// Check returns an [Error] if the [Restriction] in ctx forbids connections to the address, which has the form
// IP:port. Callers must pass the address to which they connect, after DNS resolution.
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
