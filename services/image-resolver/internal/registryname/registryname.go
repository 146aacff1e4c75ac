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
	host, port := strings.ToLower(hostport), ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host, port = host[:i], strings.TrimLeft(host[i+1:], "0")
	}
	host = canonicalAddress(host)
	if slices.Contains(hubHosts, host) {
		host = Hub
	}
	if port == "" || port == "443" {
		return host
	}
	return host + ":" + port
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
