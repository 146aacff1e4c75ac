// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// Held configures the certificate of this program, which stays in the memory of the process. Each replica issues its
// own certificate. The authority that signs it is the same for all replicas.
type Held struct {
	ID mtls.ID
	// Use receives each new certificate with its key and the authorities.
	Use func(files map[string][]byte) error
	// Refused receives the error if the Secret of the authority is forbidden or missing. This lasts until a user
	// changes it, whereas other failures are temporary.
	Refused func(ctx context.Context, why error)
}

// heldSecret is used in logs and metrics as the name of the Secret, because the certificate in memory has no Secret.
const heldSecret = "none"

// renewHeld renews the certificate in memory if it is due, and passes it to Use.
func (i *Issuer) renewHeld(ctx context.Context, all authorities) error {
	if i.config.Held == nil {
		return nil
	}
	written, err := i.renewCertificate(ctx, all, heldSecret, i.config.Held.ID, i.held)
	if err == nil && written != nil {
		err = i.config.Held.Use(i.held)
	}
	if err != nil {
		clear(i.held) // so that the next attempt issues a new certificate
		return fmt.Errorf("issue the certificate of this program: %w", err)
	}
	if written != nil {
		written()
	}
	return nil
}

// reportRefusal calls Refused if the authority's Secret is forbidden or missing.
func (i *Issuer) reportRefusal(ctx context.Context, err error) {
	if i.config.Held != nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		i.config.Held.Refused(ctx, err)
	}
}
