// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Cluster changes function pods in Kubernetes. [Guard] adds a check of the pull secret.
type Cluster interface {
	Create(action pool.Create, what podspec.Workload)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Guard is a Cluster that checks the pull secret before it creates a pod, because all pods refer to the secret. If the
// check fails for a function that requires credentials, Guard sends an event with the error. The callers that wait for
// the pod get this error.
type Guard struct {
	Cluster
	Keeper *Keeper
	Send   func(pool.Event)
}

// Create checks that the pull secret is up to date, and then creates a pod. If the check fails, it creates only pods
// whose function requires no credentials, because all images of these pods may be public.
func (g Guard) Create(action pool.Create, what podspec.Workload) {
	g.Keeper.Then(func(err error) {
		if err == nil || !what.Function.PullSecret {
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

// isTransient reports whether a later request to the Kubernetes API may succeed. Otherwise, a user must correct the
// file, a Role, or a foreign Secret with the name of the pull secret.
func isTransient(err error) bool {
	request, sent := errors.AsType[requestError](err)
	return sent && (kubeclient.IsTransient(request) || apierrors.IsConflict(request) || apierrors.IsAlreadyExists(request))
}
