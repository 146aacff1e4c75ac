// Package inside tells the addresses that only this machine or its cloud can reach,
// such as a metadata service, from those that mean the same to everybody. What is
// outside must not make this service send requests to them.
package inside

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Error is a request to an inside address that must not be sent.
type Error struct {
	// Host is how the address was given.
	Host string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the registry sends us to %s, which is a local address: that is refused", e.Host)
}

// Is says whether a host, without port, is inside as far as its spelling tells.
func Is(host string) bool {
	addr, err := netip.ParseAddr(host)
	return IsLoopback(host) || err == nil && isInside(addr)
}

// IsLoopback says whether a host, without port, is this machine as far as its
// spelling tells.
func IsLoopback(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

func isInside(addr netip.Addr) bool {
	addr = addr.Unmap() // ::ffff:127.0.0.1 is 127.0.0.1
	return addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsUnspecified()
}

// outside is the key of the host that has to be outside.
type outside struct{}

// Forbid returns ctx for a request to a host whose name must not lead inside. It is
// for [Check] to see.
func Forbid(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, outside{}, host)
}

// Check says whether a connection to the address named, as host:port, may be made
// to what the host was found to be. It may if ctx says nothing about that host: so
// a proxy may be anywhere.
func Check(ctx context.Context, named, found string) error {
	host, _, err := net.SplitHostPort(named)
	if err != nil || ctx.Value(outside{}) != host {
		return nil //nolint:nilerr // an address that makes no sense fails by itself
	}
	addr, err := netip.ParseAddrPort(found)
	if err == nil && !isInside(addr.Addr()) {
		return nil
	}
	return &Error{Host: host}
}
