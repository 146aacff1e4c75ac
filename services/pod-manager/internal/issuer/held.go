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
	// Use is called with each new certificate, its key and the authorities.
	Use func(files map[string][]byte) error
	// Refused is called when the Secret of the authority may not be used, or is missing: that stays so until a user
	// changes it. Other failures end by themselves.
	Refused func(ctx context.Context, why error)
}

// heldSecret is what logs and metrics have in place of a Secret's name.
const heldSecret = "none"

// hold renews the certificate that is in no Secret.
func (i *Issuer) hold(ctx context.Context, all authorities) error {
	if i.config.Held == nil {
		return nil
	}
	written, err := i.certificate(ctx, all, heldSecret, i.config.Held.ID, i.held)
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

// refused reports an error of the authority's Secret that does not end by itself.
func (i *Issuer) refused(ctx context.Context, err error) {
	if i.config.Held != nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		i.config.Held.Refused(ctx, err)
	}
}
