// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Hosts contains the host names that browsers may use to call a port, in addition to IP addresses and localhost.
type Hosts []string

// Permit reports whether a browser's request may contain this Host header. A web site can point its own name to the
// address of a port (DNS rebinding), so that its scripts can read answers of the port. We recognize such requests,
// because their Host header contains the site's name.
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

// isWebSite reports whether a browser sent a request for another web site or to a host name that is not permitted. It
// recognizes browsers by the headers Origin and Sec-Fetch-Site, which other clients do not send.
func (h Hosts) isWebSite(r *http.Request) bool {
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	return browser && (http.NewCrossOriginProtection().Check(r) != nil || !h.Permit(r.Host))
}
