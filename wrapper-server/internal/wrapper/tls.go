// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
)

// secretVariable is the environment variable that contains [TLS.Secret]. The pod-manager sets it in each pod with the
// flag --tls-id. A variable of that name in the image therefore has no effect.
const secretVariable = "FNR_TLS_SECRET" //nolint:gosec // a name

// TLS configures the server's certificate and the permitted callers. The pod-manager sets it in function pods.
type TLS struct {
	// ID is the pod's SPIFFE ID. If it is empty, the server uses no TLS and serves all callers.
	ID string
	// Secret proves the server's ID to callers, who have the same secret. An environment variable sets it instead of a
	// flag, because functions can read the server's command line.
	Secret string
	// Authorities are the certificate authorities of callers, as PEM.
	Authorities string
	// Callers contains patterns of the SPIFFE IDs that may call the server.
	Callers []string
}

func (t TLS) checkSettings(checks *config.Checks) {
	if t.ID == "" {
		return
	}
	_, err := mtls.NewProof(t.ID, t.Secret)
	checks.That(err == nil, "TLS.ID", t.ID, mtls.IDWanted+", with a secret in "+secretVariable)
	_, err = mtls.ParsePatterns(t.Callers)
	checks.That(err == nil && len(t.Callers) > 0, "TLS.Callers", strings.Join(t.Callers, ","), mtls.IDsWanted)
}

// newIdentity returns the server's certificate, with a new key, and the rule about permitted callers. Both are nil if
// TLS is disabled.
func (t TLS) newIdentity(frame servermain.Frame) (*mtls.Identity, rpcserve.Access, error) {
	if t.ID == "" {
		return nil, nil, nil
	}
	proof, err := mtls.NewProof(t.ID, t.Secret)
	if err != nil {
		return nil, nil, err
	}
	identity, err := mtls.Make(proof, t.Authorities, frame.Telemetry.Log, frame.Telemetry.Meters)
	if err != nil {
		return nil, nil, fmt.Errorf("--tls-authorities: %w", err)
	}
	access, err := rpcserve.Callers(identity, t.Callers)
	return identity, access, err
}
