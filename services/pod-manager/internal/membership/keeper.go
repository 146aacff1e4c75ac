// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errTaken means that another process changed this replica's Lease.
var errTaken = errors.New("write this replica's Lease: another process wrote it")

// renewLease renews this replica's Lease. The request contains the resourceVersion, so that it fails if another
// process changed the Lease.
func (k *Keeper) renewLease(ctx context.Context) error {
	ctx, cancel := k.limitRequest(ctx)
	defer cancel()
	sent := k.config.Now()
	if k.last == nil {
		found, err := k.config.Leases.Get(ctx, prefix+k.config.Replica, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return k.putLease(ctx, &coordinationv1.Lease{}, sent)
		}
		if err != nil {
			return fmt.Errorf("read this replica's Lease: %w", err)
		}
		k.last = found
	}
	return k.putLease(ctx, k.last, sent)
}

// putLease creates or updates the Lease. A Lease without a resourceVersion does not exist yet.
func (k *Keeper) putLease(ctx context.Context, lease *coordinationv1.Lease, sent time.Time) error {
	if !k.claimLease(readLease(lease)) {
		k.last = nil // read it again, because its holder may fall silent
		return nil
	}
	writeMember(lease, k.ownMember(), time.Now())
	var err error
	if lease.ResourceVersion == "" {
		lease, err = k.config.Leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		lease, err = k.config.Leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err):
		k.last = nil
		return errTaken
	case err != nil:
		k.last = nil // the write may have succeeded
		return fmt.Errorf("write this replica's Lease: %w", err)
	}
	k.last = lease
	k.recordRenewal(sent)
	return nil
}

// limitRequest returns a context with the timeout of a request. The timeout is at most the rest of actsFor, so that a
// slow request does not delay the end of this replica's ownership.
func (k *Keeper) limitRequest(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := requestTimeout
	k.mu.Lock()
	if left := actsFor - k.config.Now().Sub(k.renewed); left > 0 {
		timeout = min(timeout, left)
	}
	k.mu.Unlock()
	return context.WithTimeout(ctx, timeout)
}

// claimLease reports whether this process may write the Lease, and becomes the holder if necessary. It may write if
// it is the holder already, if it has just started, or if the holder is silent. A process that lost its Lease to
// another process is fenced until that process is silent.
func (k *Keeper) claimLease(found observedLease) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	starts := k.renewed.IsZero() && !k.fenced
	switch {
	case found.Holder == k.me.Holder:
	case starts, found.version == "", k.view.isSilent(k.me.Name):
		k.me.Generation = found.Generation + 1
	default:
		k.fenced = true
		return false
	}
	k.fenced = false
	return true
}

// ownMember returns the content of this replica's Lease.
func (k *Keeper) ownMember() Member {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.me
}

// recordRenewal records the time when the request of a successful renewal was sent.
func (k *Keeper) recordRenewal(sent time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewed = sent
}

// listLeases updates the view with the Leases of all replicas, and deletes Leases that are unchanged for forgetAfter.
func (k *Keeper) listLeases(ctx context.Context) error {
	limited, cancel := k.limitRequest(ctx)
	defer cancel()
	// Version 0 lets the API server answer from its cache.
	list, err := k.config.Leases.List(limited, metav1.ListOptions{
		LabelSelector:   labelMember + "=" + memberValue,
		ResourceVersion: "0",
	})
	if err != nil {
		return fmt.Errorf("list the Leases of replicas: %w", err)
	}
	all := make([]observedLease, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, readLease(&list.Items[i]))
	}
	k.mu.Lock()
	k.view.observeLeases(k.config.Now(), all)
	k.listed = true
	forgotten := k.view.forgottenLeases()
	k.mu.Unlock()
	for _, s := range forgotten {
		k.deleteLease(ctx, s)
	}
	return nil
}

// deleteLease deletes a Lease unless it changed since it was observed. It ignores errors, because another replica or
// a later cycle tries again.
func (k *Keeper) deleteLease(ctx context.Context, s observedLease) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	uid, version := types.UID(s.uid), s.version
	_ = k.config.Leases.Delete(ctx, prefix+s.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
}

// deleteOwnLease deletes this replica's Lease, unless another process holds it.
func (k *Keeper) deleteOwnLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if k.ownMember().Generation == 0 {
		return
	}
	lease, err := k.config.Leases.Get(ctx, prefix+k.config.Replica, metav1.GetOptions{})
	if err == nil && readLease(lease).Holder == k.config.Holder {
		k.deleteLease(ctx, readLease(lease))
	}
}
