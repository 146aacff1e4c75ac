// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// Held is a certificate that stays in the memory of this process. Each replica issues its own certificate, signed by
// the authority that the replicas share.
type Held struct {
	ID mtls.ID
	// Use receives each new certificate with its key and the authorities.
	Use func(files map[string][]byte) error
	// Refused receives the error if the Secret of the authority is forbidden or missing, which lasts until a user
	// changes it. Other failures are temporary.
	Refused func(ctx context.Context, why error)
}

// heldSecret replaces the name of a Secret in logs and metrics.
const heldSecret = "none"

// renewHeld renews the certificate in memory.
func (i *Issuer) renewHeld(ctx context.Context, all authorities) error {
	if i.config.Held == nil {
		return nil
	}
	written, err := i.renewCertificate(ctx, all, heldSecret, i.config.Held.ID, i.held)
	if err == nil && written != nil {
		err = i.config.Held.Use(i.held)
	}
	if err != nil {
		clear(i.held) // the next attempt issues another one
		return fmt.Errorf("issue the certificate of this program: %w", err)
	}
	if written != nil {
		written()
	}
	return nil
}

// reportRefusal reports a lasting error of the authority's Secret.
func (i *Issuer) reportRefusal(ctx context.Context, err error) {
	if i.config.Held != nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		i.config.Held.Refused(ctx, err)
	}
}
