// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/http"

	"github.com/krm-function-runner/function-runner/libs/rpcserve"
)

// notPermitted is the answer to requests whose Host header is not permitted.
const notPermitted = "this host name is not permitted: use an IP address or localhost, or list the name in the " +
	"gateway's setting FNR_STATUS_HOSTS"

// checkHost passes requests to next if their Host header is permitted. It rejects all other requests, so that other
// websites cannot read the page through DNS rebinding.
func checkHost(hosts rpcserve.Hosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.Permit(r.Host) {
			http.Error(w, notPermitted, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
