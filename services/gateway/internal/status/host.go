// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// hosts are the host names, in lower case, by which browsers may ask for the page.
type hosts map[string]bool

// newHosts returns the hosts of a list. Further ones are always valid: see [hosts.permit].
func newHosts(names []string) hosts {
	h := hosts{}
	for _, name := range names {
		h[strings.ToLower(name)] = true
	}
	return h
}

// permit reports whether the Host header of a request is one of ours: an IP address, localhost, or a name that is
// configured. A web site can give its own name the address of this port (DNS rebinding): its scripts then read
// the answers as their own site's, but the header has the site's name.
func (h hosts) permit(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || h[host]
}

// notPermitted is the answer to requests with another Host header.
const notPermitted = "this host name is not permitted: use an IP address or localhost, or list the name in the " +
	"gateway's setting FNR_STATUS_HOSTS (FNR_STATUS_HOSTS in function-runner)"

// guard serves next to requests with a permitted Host header.
func (h hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.permit(r.Host) {
			http.Error(w, notPermitted, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
