// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// labelMember marks the Leases of replicas.
	labelMember = "krm-function-runner.github.io/pod-manager"
	// memberValue is the value of labelMember.
	memberValue = "member"
	// annotationAddress contains the replica's address for gateways.
	annotationAddress = "krm-function-runner.github.io/address"
	// annotationStoodDown contains the reason that the replica owns no functions.
	annotationStoodDown = "krm-function-runner.github.io/stood-down"
	// fieldManager is the field manager of Leases.
	fieldManager = "krm-function-runner"
)

// prefix is the prefix of the names of replicas' Leases, because the namespace may contain other Leases.
const prefix = "fnr-"

// writeMember stores a member in its Lease. now becomes the renew time, which is only for users: replicas do not read
// it.
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
	lease.Spec.HolderIdentity = &m.Holder
	lease.Spec.LeaseTransitions = &m.Generation
	lease.Spec.LeaseDurationSeconds = new(int32(aliveFor / time.Second))
	lease.Spec.RenewTime = &renewed
}

// readLease returns the content of a Lease.
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
