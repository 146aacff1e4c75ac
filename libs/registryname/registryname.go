// SPDX-License-Identifier: Apache-2.0

// Package registryname gives each registry a canonical name, for comparing settings, rules, credentials and requests.
package registryname

import (
	"net/netip"
	"slices"
	"strings"
)

// Hub is the name of the registry that has many.
const Hub = "docker.io"

// hubHosts are further names of docker.io.
var hubHosts = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// Canonical returns the canonical name of a registry, given as host or host:port: in lower case, an address in its
// shortest form, without the default port, and docker.io for each of its hosts. Connections use the number of a port,
// regardless of leading zeros.
func Canonical(hostport string) string {
	host, port := splitPort(strings.ToLower(hostport))
	host, port = canonicalAddress(host), strings.TrimLeft(port, "0")
	if slices.Contains(hubHosts, host) {
		host = Hub
	}
	if port == "" || port == "443" {
		return host
	}
	return host + ":" + port
}

// splitPort splits a port off its host. A host that still contains colons is a bare address, or no name at all:
// splitting it again would yield another name.
func splitPort(hostport string) (host, port string) {
	i := strings.LastIndexByte(hostport, ':')
	if i < 0 || strings.HasSuffix(hostport, "]") {
		return hostport, ""
	}
	if host = hostport[:i]; strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		return hostport, ""
	}
	return host, hostport[i+1:]
}

// canonicalAddress returns a host that is an address in its shortest form, and other
// hosts as they are.
func canonicalAddress(host string) string {
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return host
	}
	if address = address.Unmap(); address.Is4() {
		return address.String()
	}
	return "[" + address.String() + "]"
}
