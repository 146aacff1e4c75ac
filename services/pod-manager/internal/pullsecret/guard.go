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

// Cluster is what a Guard wraps.
type Cluster interface {
	Create(action pool.Create, pod podspec.Request)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Guard is a Cluster in which pods name the pull secret. It checks the Secret before it creates
// a pod whose function needs it. If the Secret is missing, waiting leases get the cause.
type Guard struct {
	Cluster
	Keeper *Keeper
	Tell   func(pool.Event)
}

// Create creates a pod as soon as it can pull its function's image.
func (g Guard) Create(action pool.Create, pod podspec.Request) {
	needed := pod.Function.PullSecret
	// The images that come with a template, such as the wrapper server's, may be in
	// registries that want credentials too. A kubelet shows them to no other registry.
	pod.Function.PullSecret = true
	if !needed {
		g.Cluster.Create(action, pod)
		return
	}
	g.Keeper.Then(func(err error) {
		if err != nil {
			g.Tell(pool.CreateFailed{Name: action.Name, Problem: problem(err)})
			return
		}
		g.Cluster.Create(action, pod)
	})
}

// problem returns the problem that waiting leases get when the pull secret is missing.
func problem(err error) pool.Problem {
	if passing(err) {
		return pool.Problem{Kind: pool.Lost, Reason: err.Error()}
	}
	return pool.Problem{Kind: pool.Fatal, Reason: err.Error()}
}

// passing reports whether the Kubernetes API was only busy or unreachable. Everything else needs
// a change by a user: of the file, a role, or another Secret of that name.
func passing(err error) bool {
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
