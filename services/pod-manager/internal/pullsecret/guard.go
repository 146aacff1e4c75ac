// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Cluster is the interface to the pods in Kubernetes. A [Guard] wraps it.
type Cluster interface {
	Create(action pool.Create, what podspec.Workload)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Guard is a Cluster that checks the pull secret before it creates a pod whose function requires the secret. If the
// check fails, it sends an event with the cause, so that callers who wait for the pod get this cause.
type Guard struct {
	Cluster
	Keeper *Keeper
	Send   func(pool.Event)
}

// Create creates a pod. If the pod requires the pull secret, Create first checks that the Secret is up to date.
func (g Guard) Create(action pool.Create, what podspec.Workload) {
	if !what.Function.PullSecret {
		g.Cluster.Create(action, what)
		return
	}
	g.Keeper.Then(func(err error) {
		if err == nil {
			g.Cluster.Create(action, what)
			return
		}
		problem := pool.Problem{Kind: pool.Fatal, Reason: err.Error()}
		if isTransient(err) {
			problem.Kind = pool.Lost
		}
		g.Send(pool.CreateFailed{Name: action.Name, Problem: problem})
	})
}

// isTransient reports whether an error means that the Kubernetes API was busy or unreachable. For all other errors,
// a user must change something: the file, a Role, or another Secret with the same name.
func isTransient(err error) bool {
	if _, unsent := errors.AsType[*url.Error](err); unsent || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonTooManyRequests, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout,
		metav1.StatusReasonServiceUnavailable, metav1.StatusReasonInternalError,
		metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists:
		return true
	default:
		return false
	}
}
