// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"net/netip"
	"slices"
	"strings"
)

// Hub is the canonical name of Docker Hub, a registry with several names.
const Hub = "docker.io"

var hubHosts = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// CanonicalRegistry returns the canonical name of a registry, given as host or host:port, so that settings, rules,
// credentials and requests that spell a registry differently can be compared. The name is in lower case and
// without the default port 443. All host names of Docker Hub become docker.io. An IP address gets its shortest
// form, and the port loses leading zeros, which connections ignore.
func CanonicalRegistry(hostport string) string {
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

// splitPort splits host:port. It returns the whole text as the host if that would leave a colon in the host: the
// text is then an IPv6 address without a port, or invalid.
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

// canonicalAddress returns the shortest form of an IP address. It returns other hosts unchanged.
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
