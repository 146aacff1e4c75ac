// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// lives are the expiries of pods that are not used any more, by UID.
type lives map[string]time.Time

// prolong writes down that a pod may live until a time, if that is not known already.
func (l lives) prolong(uid string, until time.Time) {
	if until.After(l[uid]) {
		l[uid] = until
	}
}

// judgeLives looks with each tick whether a pod outlives its time to live by more than
// one scan.
func (r *referee) judgeLives(event pool.Event) error {
	for f, p := range r.pools { // a lease that is granted before the next tick also had these pods started
		for _, pod := range p.Pods {
			if p.Waiting > 0 && pod.State == podmanagerv1.Pod_STATE_STARTING {
				r.lives.prolong(pod.UID, r.now.Add(r.limits(f).TTL))
			}
		}
	}
	switch e := event.(type) {
	case pool.PodObserved:
		if _, known := r.lives[e.UID]; !known && !e.ReclaimAfter.IsZero() {
			r.lives.prolong(e.UID, r.now) // the next scan is the first that sees it
		}
		r.lives.prolong(e.UID, e.ReclaimAfter)
		if r.lives[e.UID].IsZero() {
			r.lives.prolong(e.UID, r.now.Add(r.limits(e.Function).TTL))
		}
	case pool.LeaseRequested:
		for _, pod := range r.pools[e.Function].Pods {
			if pod.State == podmanagerv1.Pod_STATE_STARTING {
				r.lives.prolong(pod.UID, r.now.Add(r.limits(e.Function).TTL))
			}
		}
	case pool.PodGone:
		delete(r.lives, e.UID)
	case pool.Tick:
		for f, p := range r.pools {
			for _, pod := range p.Pods {
				if err := r.judgeLife(r.limits(f), p, pod); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *referee) judgeLife(limits pool.Limits, p status, pod podStatus) error {
	uid, starting := pod.UID, pod.State == podmanagerv1.Pod_STATE_STARTING
	// Which pods are the minimum depends on versions that are not known here.
	if pod.Active > 0 || p.Waiting > 0 || r.minimum[p.Function] > 0 {
		r.lives.prolong(uid, r.now.Add(limits.TTL)) // which other replicas are told
	}
	if !pod.Ready.IsZero() && !pod.Adopted {
		r.lives.prolong(uid, pod.Ready.Add(limits.TTL))
	}
	limit := r.config.ScanInterval + 2*time.Second
	if starting {
		limit += limits.ReadyTimeout // the minimum may need it
	}
	over := r.now.Sub(r.lives[uid])
	if uid != "" && over > limit && (starting || pod.State == podmanagerv1.Pod_STATE_READY) {
		return fmt.Errorf("pod %s outlives its time by %s", pod.Name, over)
	}
	return nil
}

// used writes down that a pod lives for its time to live from now on.
func (r *referee) used(uid string) {
	for f, p := range r.pools {
		for _, pod := range p.Pods {
			if pod.UID == uid {
				r.lives.prolong(uid, r.now.Add(r.limits(f).TTL))
			}
		}
	}
}
