// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
)

// defaultCallers is the default pattern of the SPIFFE IDs that may call the port with TLS.
const defaultCallers = "spiffe://function-runner/callers/*"

// off is the value of Config.Address that disables the port without TLS.
const off = "off"

// checkIdentities reports invalid settings of the TLS port and of the callers that may use it.
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

// maxConnectionAge is the age at which the gateway closes a caller's connection, plus or minus up to 10 %. The
// caller then connects again, possibly to another replica, so that the load spreads over all replicas.
const maxConnectionAge = 5 * time.Minute

// newEndpoints returns the gateway's enabled ports. The port without TLS serves all callers, and the port with TLS
// serves callers with a client certificate.
func newEndpoints(cfg Config, handler *rpcserve.Handler, frame servermain.Frame) ([]serve.Endpoint, error) {
	plain := serve.Endpoint{
		Name: "evaluator", Address: cfg.Address, Handler: handler, MaxConnectionAge: maxConnectionAge,
		MaxConnections: cfg.MaxConnections, MaxConnectionsPerPeer: cfg.MaxConnections / 4,
	}
	if cfg.TLSAddress == "" {
		return []serve.Endpoint{plain}, nil
	}
	if frame.Identity == nil {
		return nil, errors.New("a port with TLS needs a certificate: set FNR_TLS_DIRECTORY")
	}
	access, err := rpcserve.Callers(frame.Identity, cfg.Callers)
	if err != nil {
		return nil, err
	}
	secure := plain
	secure.Name = "evaluator with TLS"
	secure.Address = cfg.TLSAddress
	secure.TLS = frame.Identity.Server()
	secure.Handler = handler.Restrict(secure.Name, access)
	if cfg.Address == off {
		return []serve.Endpoint{secure}, nil
	}
	return []serve.Endpoint{plain, secure}, nil
}
