package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// hubHosts are further names of docker.io.
var hubHosts = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// canonical returns a repository, or a pattern of some, in the one spelling in which
// they are compared, so that no other spelling of a registry gets around a rule.
func canonical(repository string) string {
	host, path, ok := strings.Cut(strings.ToLower(repository), "/")
	if !ok {
		return host
	}
	return canonicalHost(host) + "/" + path
}

// canonicalHost returns a registry's one name. Connections are made to the number that
// a port is, however many zeros it begins with.
func canonicalHost(hostport string) string {
	host, port := hostport, ""
	if i := strings.LastIndexByte(hostport, ':'); i >= 0 && !strings.HasSuffix(hostport, "]") {
		host, port = hostport[:i], strings.TrimLeft(hostport[i+1:], "0")
	}
	host = canonicalAddress(host)
	if slices.Contains(hubHosts, host) {
		host = "docker.io"
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
