// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// joinTimeout is the time for which a replica tries to renew its Lease before it serves without a Lease. It is
	// longer than aliveFor, so that peers, if there are any, have taken over this replica's functions by then.
	joinTimeout = 20 * time.Second
	// firstRightsInterval is the delay before a replica without rights on Leases tries again. The delay doubles up to
	// rightsInterval. It is short at first, because an API server that has just started refuses requests that it
	// allows later.
	firstRightsInterval = 15 * time.Second
	rightsInterval      = 15 * time.Minute
)

// recordCycle stores the result of a cycle, logs changes and returns the delay until the next cycle.
func (k *Keeper) recordCycle(ctx context.Context, err error) time.Duration {
	k.mu.Lock()
	before := k.alone
	k.failure = err
	k.alone = k.actsAlone(err)
	now := k.alone
	k.mu.Unlock()
	switch {
	case now && !before && apierrors.IsForbidden(err):
		k.config.Log.WarnContext(ctx, "no rights on Leases; this replica acts without membership",
			"needs", "the Role of deploy/components/function-pods", "error", err)
	case now && !before:
		k.config.Log.WarnContext(ctx, "Lease not accepted, and no other replica alive; acting without membership",
			"error", err)
	case before && err == nil:
		k.config.Log.InfoContext(ctx, "Lease accepted; this replica acts as a member")
	}
	return k.nextDelay(err, now)
}

// actsAlone reports whether this replica acts without membership. It does so if the Kubernetes API responds but
// rejects this replica's Lease. err is the error of the last cycle. The caller must hold the lock.
func (k *Keeper) actsAlone(err error) bool {
	now := k.config.Now()
	switch {
	case err == nil:
		return false
	case k.lostReason(now) == "":
		return false // still a member
	case apierrors.IsForbidden(err):
		return true
	case !isRefusal(err):
		return k.alone
	default:
		return k.isOverdue(now) && len(k.view.aliveMembers(k.me.Name)) == 0
	}
}

// isOverdue reports whether the Lease was not renewed for joinTimeout. The caller must hold the lock.
func (k *Keeper) isOverdue(now time.Time) bool {
	since := k.began
	if !k.renewed.IsZero() {
		since = k.renewed
	}
	return now.Sub(since) >= joinTimeout
}

// isRefusal reports whether the API server responded with an error, as opposed to no response.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// nextDelay returns the delay until the next cycle. Only the goroutine of Run may call it.
func (k *Keeper) nextDelay(err error, alone bool) time.Duration {
	if !alone || !apierrors.IsForbidden(err) {
		k.refusal = 0
	}
	switch {
	case err == nil:
		return renewInterval
	case !alone:
		return retryInterval
	case apierrors.IsForbidden(err):
		k.refusal = min(max(2*k.refusal, firstRightsInterval), rightsInterval)
		return k.refusal
	default:
		return renewInterval
	}
}
