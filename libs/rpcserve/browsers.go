// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Hosts are the host names by which browsers may call a port, in addition to IP addresses and localhost.
type Hosts []string

// Permit reports whether browsers may use the Host header of a request. A web site can point its own name to the
// address of a port (DNS rebinding). Its scripts can then read the answers like answers of their own site, but the
// header contains the site's name.
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

// rejectWebSites rejects requests of browsers on behalf of other web sites, and requests to host names that are not
// permitted. Only browsers send the two headers.
func rejectWebSites(hosts Hosts, next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
		if browser && (protection.Check(r) != nil || !hosts.Permit(r.Host)) {
			http.Error(w, "web sites may not call this port", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
