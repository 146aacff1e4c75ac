// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// defaultCallers is the default pattern of the SPIFFE IDs that may call the port with TLS.
const defaultCallers = "spiffe://function-runner/callers/*"

// off is the value of Config.Address that disables the port without TLS.
const off = "off"

// checkIdentities adds an error to checks for each invalid setting of the TLS port and of its callers.
func (c *Config) checkIdentities(checks *config.Checks) {
	if c.TLSAddress == "" {
		named := len(c.Callers) > 0 && !slices.Equal(c.Callers, []string{defaultCallers})
		checks.That(!named, "Callers", strings.Join(c.Callers, ","),
			"left out without a port with TLS, because only that port identifies callers")
		checks.That(c.Address != off, "Address", c.Address, "host:port without a port with TLS")
		return
	}
	_, _, err := net.SplitHostPort(c.TLSAddress)
	checks.That(err == nil, "TLSAddress", c.TLSAddress, "host:port, or empty for no such port")
	_, err = mtls.ParsePatterns(c.Callers)
	checks.That(err == nil, "Callers", strings.Join(c.Callers, ","), mtls.IDsWanted)
}
