// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// labelMember is on the Leases of replicas, and on no others.
	labelMember = "krm-function-runner.github.io/pod-manager"
	// memberValue is its value.
	memberValue = "member"
	// annotationAddress is where gateways reach the replica.
	annotationAddress = "krm-function-runner.github.io/address"
	// annotationStoodDown is why the replica owns nothing.
	annotationStoodDown = "krm-function-runner.github.io/stood-down"
	// fieldManager is the name under which Leases are written.
	fieldManager = "krm-function-runner"
)

// prefix begins the names of Leases: others may be in the namespace.
const prefix = "fnr-"

// writeMember puts what a member is into its Lease. The time is for users: no replica reads it.
func writeMember(lease *coordinationv1.Lease, m Member, now time.Time) {
	lease.Name = prefix + m.Name
	if lease.Labels == nil {
		lease.Labels = make(map[string]string)
	}
	lease.Labels[labelMember] = memberValue
	lease.Annotations = map[string]string{annotationAddress: m.Address, annotationStoodDown: m.StoodDown}
	renewed := metav1.NewMicroTime(now)
	if lease.Spec.AcquireTime == nil || m.Holder != ptr.Deref(lease.Spec.HolderIdentity, "") {
		lease.Spec.AcquireTime = &renewed
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions = &m.Holder, &m.Generation
	lease.Spec.LeaseDurationSeconds = new(int32(aliveFor / time.Second))
	lease.Spec.RenewTime = &renewed
}

// readLease returns what a Lease says.
func readLease(lease *coordinationv1.Lease) observedLease {
	return observedLease{
		Member: Member{
			Name: lease.Name[min(len(prefix), len(lease.Name)):], Holder: ptr.Deref(lease.Spec.HolderIdentity, ""),
			Generation: ptr.Deref(lease.Spec.LeaseTransitions, 0),
			Address:    lease.Annotations[annotationAddress], StoodDown: lease.Annotations[annotationStoodDown],
		},
		uid: string(lease.UID), version: lease.ResourceVersion,
	}
}
