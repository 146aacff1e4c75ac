// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/identify"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/tokenreview"
)

// TokenConfig is the settings of tokens that Kubernetes issued.
type TokenConfig struct {
	// Users are the users whose tokens are accepted, such as
	// system:serviceaccount:porch-system:porch-server; "*" at the end matches all that begin so. Without
	// any, no token is accepted.
	Users []string
	// Audiences are those of which a token has to have one.
	Audiences []string `default:"function-runner"`
	// API is where the Kubernetes API is asked about tokens.
	API string `default:"https://kubernetes.default.svc"`
	// Directory has the token and the ca.crt of the gateway's service account.
	Directory string `default:"/var/run/secrets/kubernetes.io/serviceaccount"`
}

// defaultCallers is the default of Config.Callers.
const defaultCallers = "spiffe://function-runner/callers/*"

// checkIdentities adds the problems of the settings of identities.
func (c *Config) checkIdentities(checks *config.Checks) {
	if c.TLSAddress == "" {
		named := len(c.Callers) > 0 && !slices.Equal(c.Callers, []string{defaultCallers})
		checks.That(!named, "Callers", strings.Join(c.Callers, ","),
			"left out without a port with TLS, which alone knows callers")
		checks.That(!c.RequireIdentity, "RequireIdentity", c.RequireIdentity, "false without a port with TLS")
		checks.That(len(c.Token.Users) == 0, "Token.Users", strings.Join(c.Token.Users, ","),
			"empty without a port with TLS")
		return
	}
	_, _, err := net.SplitHostPort(c.TLSAddress)
	checks.That(err == nil, "TLSAddress", c.TLSAddress, "host:port, or empty for no such port")
	_, err = mtls.ParsePatterns(c.Callers)
	checks.That(err == nil, "Callers", strings.Join(c.Callers, ","), mtls.IDsWanted)
	if len(c.Token.Users) == 0 {
		return
	}
	checks.That(len(c.Token.Audiences) > 0 && !slices.Contains(c.Token.Audiences, ""), "Token.Audiences",
		strings.Join(c.Token.Audiences, ","), "an audience, or several with commas")
	api, err := url.Parse(c.Token.API)
	checks.That(err == nil && api.Scheme == "https" && api.Host != "", "Token.API", c.Token.API, "https://host:port")
	checks.That(c.Token.Directory != "", "Token.Directory", c.Token.Directory, "the path of a directory")
}

// doors returns the ports at which callers get handler, and the tasks that they need.
func doors(cfg Config, handler http.Handler, frame program.Frame) ([]serve.Endpoint, []serve.Task, error) {
	door := serve.Endpoint{
		Name: "evaluator", Address: cfg.Address, Handler: handler, MaxConnectionAge: cfg.MaxConnectionAge,
		MaxConnections: cfg.MaxConnections, MaxConnectionsPerPeer: cfg.MaxConnectionsPerPeer,
	}
	if cfg.TLSAddress == "" {
		return []serve.Endpoint{door}, nil, nil
	}
	if frame.Identity == nil {
		return nil, nil, errors.New("a port with TLS needs a certificate: set FNR_TLS_DIRECTORY")
	}
	ids, err := mtls.ParsePatterns(cfg.Callers)
	if err != nil {
		return nil, nil, err
	}
	callers, tasks := identify.Callers{IDs: ids, Users: cfg.Token.Users}, []serve.Task(nil)
	if len(cfg.Token.Users) > 0 {
		reviewer, err := tokenreview.New(tokenreview.Config{
			API: cfg.Token.API, Directory: cfg.Token.Directory, Audiences: cfg.Token.Audiences, Telemetry: frame.Telemetry,
		})
		if err != nil {
			return nil, nil, err
		}
		callers.Tokens, tasks = reviewer, append(tasks, reviewer.Run)
	}
	secure := door
	secure.Name, secure.Address, secure.TLS = "evaluator with TLS", cfg.TLSAddress, frame.Identity.Server()
	secure.Handler, err = rpcserve.Restricted(secure.Name, identify.Access(callers), frame.Telemetry, handler)
	if err != nil {
		return nil, nil, err
	}
	if cfg.RequireIdentity {
		return []serve.Endpoint{secure}, tasks, nil
	}
	return []serve.Endpoint{door, secure}, tasks, nil
}
