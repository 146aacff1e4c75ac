// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"cmp"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krm-function-runner/function-runner/libs/ownership"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// use identifies the evaluations in a pod whose leases a replica granted.
type use struct {
	pod     types.UID
	replica string
}

// countUses returns the number of evaluations in a pod, except those whose leases a replica granted. The caller must
// hold the lock.
func (w *world) countUses(pod types.UID, except string) int {
	n := 0
	for u, evaluations := range w.used {
		if u.pod == pod && u.replica != except {
			n += evaluations
		}
	}
	return n
}

// leaseChange is a change of a replica's Lease.
type leaseChange struct {
	at             time.Time
	replica        string
	address        string
	standing, gone bool // standing is true if the replica may own functions
}

func (w *world) recordLease(event watch.EventType, lease *coordinationv1.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases = append(w.leases, leaseChange{
		at: time.Now(), replica: *lease.Spec.HolderIdentity,
		address:  lease.Annotations["krm-function-runner.github.io/address"],
		standing: lease.Annotations["krm-function-runner.github.io/stood-down"] == "",
		gone:     event == watch.Deleted,
	})
}

const (
	// leaseTime is how long a replica counts as alive after a change of its Lease.
	leaseTime = 15 * time.Second
	// handover is how long replicas may disagree about who owns a function.
	handover = 20 * time.Second
)

// ownerAt returns the replica that owned an image by the Leases at a time, or an empty string without Leases. The
// caller must hold the lock.
func (w *world) ownerAt(image string, at time.Time) string {
	last := make(map[string]leaseChange)
	for _, change := range w.leases {
		if !change.at.After(at) {
			last[change.replica] = change
		}
	}
	var alive, standing []leaseChange
	for _, change := range last {
		if change.gone || at.Sub(change.at) >= leaseTime {
			continue
		}
		alive = append(alive, change)
		if change.standing {
			standing = append(standing, change)
		}
	}
	if len(standing) == 0 {
		standing = alive
	}
	keys := make([]string, 0, len(standing))
	for _, change := range standing {
		keys = append(keys, cmp.Or(change.address, change.replica))
	}
	if i := ownership.Owner(keys, image); i >= 0 {
		return standing[i].replica
	}
	return ""
}

// mayOwn reports whether a replica owns an image by the Leases, or owned the image a moment ago. The caller must hold
// the lock.
func (w *world) mayOwn(replica, image string) bool {
	for age := time.Duration(0); age <= handover; age += time.Second {
		if owner := w.ownerAt(image, time.Now().Add(-age)); owner == replica || owner == "" {
			return true
		}
	}
	return false
}

// deleted is told of each deletion that begins. Only the owner of a function may delete a pod in which another replica
// has evaluations. In the process of their callers, replicas may not know of evaluations that have just begun.
func (w *world) deleted(by string, pod *corev1.Pod) {
	w.mu.Lock()
	w.counted.deleted = append(w.counted.deleted, deletion{by: by, pod: pod.Name, at: w.now()})
	used := w.countUses(pod.UID, by)
	wrong := used > 0 && !w.setup.InProcess && !w.mayOwn(by, pod.Annotations[podspec.AnnotationReference])
	w.mu.Unlock()
	if wrong {
		w.fail("%s deleted %s with %d evaluations of other replicas, and does not own it", by, pod.Name, used)
	}
}
