// Package inside tells the addresses that only this machine or its cloud can reach,
// such as a metadata service, from those that mean the same to everybody. What is
// outside must not make this service send requests to them.
package inside

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
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

// metadata are the addresses of clouds' metadata services that are not link-local: of
// AWS, Alibaba, Azure and Oracle.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
}

// translated are the IPv6 addresses that a gateway takes for those of IPv4 at their end.
var translated = netip.MustParsePrefix("64:ff9b::/96")

func isInside(addr netip.Addr) bool {
	addr = addr.Unmap() // ::ffff:127.0.0.1 is 127.0.0.1
	if translated.Contains(addr) {
		addr = netip.AddrFrom4([4]byte(addr.AsSlice()[12:]))
	}
	return addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || slices.Contains(metadata, addr.WithZone(""))
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
