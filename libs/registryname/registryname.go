// SPDX-License-Identifier: Apache-2.0

// Package registryname gives each registry one name, by which settings, rules,
// credentials and requests are compared.
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

// Canonical returns the one name of a registry that is given as host or host:port: in
// small letters, an address in its shortest form, without the port that is meant anyway,
// and docker.io for each of its hosts. Connections are made to the number that a port
// is, however many zeros it begins with.
func Canonical(hostport string) string {
	host, port := split(strings.ToLower(hostport))
	host, port = canonicalAddress(host), strings.TrimLeft(port, "0")
	if slices.Contains(hubHosts, host) {
		host = Hub
	}
	if port == "" || port == "443" {
		return host
	}
	return host + ":" + port
}

// split takes a port off its host. What has colons left would be another name each time
// that its canonical one is asked for: it is a bare address, or no name at all.
func split(hostport string) (host, port string) {
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
