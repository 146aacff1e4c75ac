// SPDX-License-Identifier: Apache-2.0

// Package dialguard prevents connections from this service to local addresses. These are addresses of this machine,
// link-local addresses, and addresses of cloud metadata services. Without this check, callers could reach them by image
// names, and registries could reach them by redirects. Private addresses do not count as local, because registries in
// clusters use them. However, a [Restriction] can also forbid private addresses.
package dialguard

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// Error is the error of [Check] for a connection to a forbidden address.
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
	// OnPrivate is called before the request uses a connection to a private address. It may be nil.
	OnPrivate func()
}

// Restrict returns a copy of ctx with the restriction r. [Check] applies r to requests with this context.
func Restrict(ctx context.Context, r Restriction) context.Context {
	return context.WithValue(ctx, restrictionKey{}, r)
}

// Lift returns a copy of ctx without its [Restriction]. Callers use it for requests through a proxy. Such a request
// connects only to the proxy, and the proxy may be at a local address.
func Lift(ctx context.Context) context.Context {
	return context.WithValue(ctx, restrictionKey{}, nil)
}

// Scope is the set of addresses that a request may connect to. Requests of different scopes must not share connections.
type Scope int

// Possible scopes. The last constant, Scopes, is the number of scopes.
const (
	AllAddresses Scope = iota
	NoLocalAddresses
	PublicAddresses
	Scopes
)

// ScopeOf returns the scope of requests with the [Restriction] in ctx.
func ScopeOf(ctx context.Context) Scope {
	r, ok := ctx.Value(restrictionKey{}).(Restriction)
	switch {
	case !ok:
		return AllAddresses
	case r.Private:
		return NoLocalAddresses
	default:
		return PublicAddresses
	}
}

// Check returns an [Error] if the [Restriction] in ctx forbids connections to address, and otherwise nil. The address
// has the form IP:port. Callers must first resolve the host name, and then connect to exactly this address.
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

// local lists the networks that restricted requests must not reach, such as loopback. It includes addresses of cloud
// metadata services outside of the link-local networks.
var local = parsePrefixes(
	"0.0.0.0/8",          // "this" network
	"127.0.0.0/8",        // loopback
	"169.254.0.0/16",     // link-local, with most metadata services
	"224.0.0.0/4",        // multicast
	"255.255.255.255/32", // broadcast
	"::/128", "::1/128", "fe80::/10", "ff00::/8",
	"100.100.100.200/32",                       // metadata of Alibaba
	"168.63.129.16/32",                         // metadata of Azure
	"192.0.0.192/32", "fd00:c1::a9fe:a9fe/128", // metadata of Oracle
	"fd00:ec2::/32",    // metadata and credentials of AWS
	"fd20:ce::254/128", // metadata of Google
	"fd00:42::42/128",  // metadata of Scaleway
)

// embedding lists the IPv6 prefixes whose addresses contain an IPv4 address. The offset is the position of the IPv4
// address, in bytes. Gateways, tunnels or kernels send packets to this IPv4 address, which may be local. The prefix
// ::ffff:0:0/96 is missing, because netip.Addr.Unmap already converts its addresses.
var embedding = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // NAT64, for local use
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

func parsePrefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// isLocal reports whether addr is a local address, or an IPv6 address that contains a local IPv4 address.
func isLocal(addr netip.Addr) bool {
	return isWithin(addr, local)
}

// private contains the prefixes of private networks, such as the networks of companies and clusters.
var private = parsePrefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")

// isPrivate reports whether addr belongs to a private network.
func isPrivate(addr netip.Addr) bool { return isWithin(addr, private) }

// IsPrivate reports whether host is an IP address of a private network. It returns false for DNS names. [Check] checks
// their addresses when the connection is made.
func IsPrivate(host string) bool {
	addr, ok := parseAddress(host)
	return ok && isPrivate(addr)
}

// isWithin reports whether an address has a prefix in list. It also finds an IPv4 address inside an IPv6 address.
func isWithin(addr netip.Addr, list []netip.Prefix) bool {
	addr = addr.WithZone("").Unmap() // no prefix contains addresses with a zone
	if slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return true
	}
	for _, e := range embedding {
		if e.prefix.Contains(addr) {
			return isWithin(netip.AddrFrom4([4]byte(addr.AsSlice()[e.offset:])), list)
		}
	}
	return false
}

// IsLocal reports whether host, without port, is a local address or a name of this machine, such as localhost. All
// addresses in unusual forms, such as 127.1 or 0x7f.0.0.1, count as local. Other names must be resolved first, see
// [Check].
func IsLocal(host string) bool {
	if addr, ok := parseAddress(host); ok {
		return isLocal(addr)
	}
	return IsLoopback(host) || endsInNumber(normalizeHost(host))
}

// IsLoopback reports whether host, without port, is a loopback address or a name such as localhost.
func IsLoopback(host string) bool {
	addr, ok := parseAddress(host)
	name := normalizeHost(host)
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || (ok && addr.Unmap().IsLoopback())
}

func parseAddress(host string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(normalizeHost(host))
	return addr, err == nil
}

// endsInNumber reports whether the last label of a host is a decimal or octal number, or begins with 0x. DNS names do
// not end in a number, but DNS resolvers and proxies accept IPv4 addresses such as 127.1, 2130706433 and 0x7f000001.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return strings.HasPrefix(last, "0x") || (last != "" && strings.Trim(last, "0123456789") == "")
}

// normalizeHost returns a host in lower case and in ASCII, in the form that package http sends to DNS and proxies. It
// replaces other Unicode forms, such as full-width letters.
func normalizeHost(host string) string {
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
