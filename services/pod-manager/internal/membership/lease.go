// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// labelMember is the label that marks Lease objects of pod-manager replicas.
	labelMember = "krm-function-runner.github.io/pod-manager"
	memberValue = "member"
	// annotationAddress contains the address where gateways reach the replica.
	annotationAddress = "krm-function-runner.github.io/address"
	// annotationStoodDown contains the reason that the replica owns no functions. It is empty if the replica may own
	// functions.
	annotationStoodDown = "krm-function-runner.github.io/stood-down"
	fieldManager        = "krm-function-runner"
	// prefix starts the name of each Lease of a replica, to avoid conflicts with other Leases in the namespace.
	prefix = "fnr-"
)

// newLease returns the Lease object that describes a replica. Its renew time is for users, and replicas ignore it.
func newLease(m Member, now time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: prefix + m.Name, Labels: map[string]string{labelMember: memberValue},
			Annotations: map[string]string{annotationAddress: m.Address, annotationStoodDown: m.StoodDown},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &m.Name, LeaseDurationSeconds: new(int32(aliveFor / time.Second)),
			RenewTime: new(metav1.NewMicroTime(now)),
		},
	}
}

// readMember returns the replica that a Lease object describes.
func readMember(lease *coordinationv1.Lease) Member {
	return Member{
		Name:    lease.Name[min(len(prefix), len(lease.Name)):],
		Address: lease.Annotations[annotationAddress], StoodDown: lease.Annotations[annotationStoodDown],
	}
}

// renewLease creates or updates this replica's Lease. At the start and after a failed request, it first reads the
// Lease, because an earlier process or the failed request may have written the Lease.
func (k *Keeper) renewLease(ctx context.Context) error {
	sent := k.config.Now()
	last := k.last
	k.last = nil
	if last == nil {
		found, err := k.config.Leases.Get(ctx, prefix+k.config.Replica, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read this replica's Lease: %w", err)
		}
		last = found
	}
	lease := newLease(k.ownMember(), time.Now())
	var err error
	if last == nil || last.ResourceVersion == "" { // after an error, Get returned an empty object
		lease, err = k.config.Leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		lease.ResourceVersion = last.ResourceVersion
		lease, err = k.config.Leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("write this replica's Lease: %w", err)
	}
	k.last = lease
	k.recordRenewal(sent)
	return nil
}

// ownMember returns this replica's data for its Lease.
func (k *Keeper) ownMember() Member {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.me
}

// recordRenewal stores the time at which the last successful renewal of the Lease was requested.
func (k *Keeper) recordRenewal(sent time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewed = sent
}

// listLeases lists the Leases of all replicas to find the living replicas. It deletes Leases that have not changed
// for an hour (forgetAfter).
func (k *Keeper) listLeases(ctx context.Context) error {
	// Version 0 permits the API server to answer from its cache.
	list, err := k.config.Leases.List(ctx, metav1.ListOptions{
		LabelSelector:   labelMember + "=" + memberValue,
		ResourceVersion: "0",
	})
	if err != nil {
		return fmt.Errorf("list the Leases of replicas: %w", err)
	}
	k.mu.Lock()
	k.view = k.view.observe(k.config.Now(), list.Items)
	forgotten := k.view.forgottenLeases()
	k.mu.Unlock()
	for _, lease := range forgotten {
		k.deleteLease(ctx, lease)
	}
	return nil
}

// deleteLease deletes a Lease unless it changed since it was observed. It ignores errors, because another replica
// or a later call deletes the Lease.
func (k *Keeper) deleteLease(ctx context.Context, lease *coordinationv1.Lease) {
	_ = k.config.Leases.Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
}

// deleteOwnLease deletes this replica's Lease at the end of Run, unless a later process has changed the Lease.
func (k *Keeper) deleteOwnLease(ctx context.Context) {
	if k.last == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cycleTimeout)
	defer cancel()
	k.deleteLease(ctx, k.last)
}
