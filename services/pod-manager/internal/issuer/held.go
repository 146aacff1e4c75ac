// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// Held configures the certificate of the program that runs the issuer. This certificate stays in the memory of the
// process. Each replica issues its own certificate, signed by the authority that all replicas share.
type Held struct {
	ID mtls.ID
	// Use is called with each new certificate, its key and the trusted authorities, as PEM files by file name.
	Use func(files map[string][]byte) error
	// Refused is called with the error if Kubernetes forbids access to the authority's Secret, or if that Secret is
	// missing. A user must correct this, whereas other failures are temporary.
	Refused func(ctx context.Context, why error)
}

// heldSecret replaces the name of a Secret in logs and metrics about the certificate in memory.
const heldSecret = "none"

// renewHeld renews the certificate in memory if it is due, and calls [Held.Use] with the new certificate.
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

// reportRefusal calls [Held.Refused] if err means that the authority's Secret is forbidden or missing.
func (i *Issuer) reportRefusal(ctx context.Context, err error) {
	if i.config.Held != nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		i.config.Held.Refused(ctx, err)
	}
}
