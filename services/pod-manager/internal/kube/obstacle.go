// SPDX-License-Identifier: Apache-2.0

package kube

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Obstacle is why [Cluster.Synced] is still open; nil if nothing is known that would
// keep it so. A lack of rights has class [fault.Precondition].
func (c *Cluster) Obstacle() error {
	for _, o := range c.outages {
		if err := o.obstacle("function pods", "which function pods there are", "deploy/components/namespaces"); err != nil {
			return err
		}
	}
	return nil
}

// obstacle returns why the informer is not up to date; nil if it is. The text names the
// objects, the open question, and the deploy component that grants the rights.
func (o *outage) obstacle(things, question, rights string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.cause == nil:
		return nil
	case apierrors.IsForbidden(o.cause), apierrors.IsUnauthorized(o.cause):
		return fault.New(fault.Precondition, "the Kubernetes API does not let %s be seen, which takes the rights of %s: %w", things, rights, o.cause)
	}
	return fault.New(fault.Unavailable, "the Kubernetes API does not say %s: %w", question, o.cause)
}
