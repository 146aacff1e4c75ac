// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
)

// secretVariable is the variable of the secret. The pod-manager sets it in each pod that gets --tls-id, overriding an
// image's variable.
const secretVariable = "FNR_TLS_SECRET" //nolint:gosec // a name

// TLS configures the server's certificate and its callers. The pod-manager sets it in function pods.
type TLS struct {
	// ID is the pod's SPIFFE ID. If it is empty, the server uses no TLS and serves all callers.
	ID string
	// Secret proves the ID to callers, which know it too. It is an environment variable, because functions can read the
	// server's command line.
	Secret string
	// Authorities are the authorities of the callers' certificates, as PEM.
	Authorities string
	// Callers are patterns of the SPIFFE IDs that may evaluate.
	Callers []string
}

// checkSettings adds the problems of the settings.
func (t TLS) checkSettings(checks *config.Checks) {
	if t.ID == "" {
		return
	}
	_, err := mtls.NewProof(t.ID, t.Secret)
	checks.That(err == nil, "TLS.ID", t.ID, mtls.IDWanted+", with a secret in "+secretVariable)
	_, err = mtls.ParsePatterns(t.Callers)
	checks.That(err == nil && len(t.Callers) > 0, "TLS.Callers", strings.Join(t.Callers, ","), mtls.IDsWanted)
}

// newIdentity returns the server's identity, with a new key, and the callers that may evaluate. Both are nil without TLS.
func (t TLS) newIdentity(frame program.Frame) (*mtls.Identity, rpcserve.Access, error) {
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
