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

// TLS is how the server proves who it is, and whom it accepts. The pod-manager sets it in function pods.
type TLS struct {
	// ID is the pod's SPIFFE ID; empty for no TLS, and any caller.
	ID string
	// Secret proves the ID: the callers know it too.
	Secret string
	// Authorities are those of the callers' certificates, as PEM.
	Authorities string
	// Callers are patterns of the SPIFFE IDs that may evaluate.
	Callers []string
	// Permissive accepts callers without a certificate, and without TLS, too.
	Permissive bool
}

// check adds the problems of the settings.
func (t TLS) check(checks *config.Checks) {
	if t.ID == "" {
		return
	}
	_, err := mtls.NewProof(t.ID, t.Secret)
	checks.That(err == nil, "TLS.ID", t.ID, mtls.IDWanted+", with a secret in FNR_TLS_SECRET")
	_, err = mtls.ParsePatterns(t.Callers)
	checks.That(err == nil && len(t.Callers) > 0, "TLS.Callers", strings.Join(t.Callers, ","), mtls.IDsWanted)
}

// identity returns the server's identity, with a key that it makes now, and who may call; nil for none and all.
func (t TLS) identity(frame program.Frame) (*mtls.Identity, rpcserve.Access, error) {
	if t.ID == "" {
		return nil, nil, nil
	}
	proof, err := mtls.NewProof(t.ID, t.Secret)
	if err != nil {
		return nil, nil, err
	}
	identity, err := mtls.Make(proof, t.Authorities, t.Permissive, frame.Telemetry.Log, frame.Telemetry.Meters)
	if err != nil {
		return nil, nil, fmt.Errorf("FNR_TLS_AUTHORITIES: %w", err)
	}
	access, err := rpcserve.Callers(identity, t.Callers)
	return identity, access, err
}
