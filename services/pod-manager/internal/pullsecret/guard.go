// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Cluster changes function pods in Kubernetes. [Guard] wraps a Cluster to check the pull secret before a creation.
type Cluster interface {
	Create(action pool.Create, what podspec.Workload)
	Delete(action pool.Delete)
	Extend(action pool.Extend)
}

// Guard is a Cluster that checks the pull secret before it creates a pod. This is necessary because all pods refer to
// the secret. If the check fails for a function that requires credentials, Guard does not create the pod. It sends the
// error in an event, so that the callers that wait for the pod get it.
type Guard struct {
	Cluster
	Keeper *Keeper
	Send   func(pool.Event)
}

// Create checks that the pull secret is up to date, and then creates a pod. After a failed check, it creates the pod
// only if the function requires no credentials. All images of such a pod may be public.
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

// isTransient reports whether a failed check of the pull secret may succeed later without action by a user. Otherwise,
// a user must correct the docker configuration file, a Role, or a foreign Secret with the name of the pull secret.
func isTransient(err error) bool {
	request, sent := errors.AsType[requestError](err)
	return sent && (kubeclient.IsTransient(request) || apierrors.IsConflict(request) || apierrors.IsAlreadyExists(request))
}
