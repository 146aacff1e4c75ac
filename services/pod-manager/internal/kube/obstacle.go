package kube

import (
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// obstacle is what keeps function pods from being seen.
type obstacle struct{ cause atomic.Pointer[error] }

// is takes note of why a list or a watch failed.
func (o *obstacle) is(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		err = fault.New(fault.Precondition, "the Kubernetes API does not let function pods be seen, which takes the rights of deploy/components/namespaces: %w", err)
	} else {
		err = fault.New(fault.Unavailable, "the Kubernetes API does not say which function pods there are: %w", err)
	}
	o.cause.Store(&err)
}

// Obstacle is why [Cluster.Synced] is still open; nil if nothing is known that would
// keep it so. A lack of rights has class [fault.Precondition].
func (c *Cluster) Obstacle() error {
	if cause := c.obstacle.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}
