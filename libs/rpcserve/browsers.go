// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Hosts contains the host names by which browsers may call a port. IP addresses and localhost are always permitted.
type Hosts []string

// Permit reports whether a browser may call the port by the host name in the request's Host header. It prevents DNS
// rebinding: a malicious web site can let its own host name resolve to our address, so that its scripts can read
// our answers. The Host header of such a request contains the site's name.
func (h Hosts) Permit(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(h, func(name string) bool { return strings.EqualFold(name, host) })
}

// isWebSite reports whether a request must be rejected because a script of another web site sent it, or because it
// has a host name that is not permitted. Only requests of browsers are rejected: they contain the header Origin or
// Sec-Fetch-Site.
func (h Hosts) isWebSite(r *http.Request) bool {
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	return browser && (http.NewCrossOriginProtection().Check(r) != nil || !h.Permit(r.Host))
}
