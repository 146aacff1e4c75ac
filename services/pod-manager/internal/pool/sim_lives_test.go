package pool_test

import (
	"fmt"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// lives are until when pods may live that nobody uses any more, by UID.
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
		for _, pod := range r.pools[e.Function].GetPods() {
			if pod.GetState() == podmanagerv1.Pod_STATE_STARTING {
				r.lives.prolong(pod.GetUid(), r.now.Add(r.limits(e.Function).TTL))
			}
		}
	case pool.PodGone:
		delete(r.lives, e.UID)
	case pool.Tick:
		for f, p := range r.pools {
			for _, pod := range p.GetPods() {
				if err := r.judgeLife(r.limits(f), p, pod); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func keyOf(p *podmanagerv1.Pool) pool.Function {
	return pool.Function{Reference: p.GetKey().GetReference(), Digest: p.GetKey().GetDigest()}
}

func (r *referee) judgeLife(limits pool.Limits, p *podmanagerv1.Pool, pod *podmanagerv1.Pod) error {
	uid, starting := pod.GetUid(), pod.GetState() == podmanagerv1.Pod_STATE_STARTING
	if pod.GetActive() > 0 || p.GetWaiting() > 0 || usable(p) <= r.minimum[keyOf(p)] {
		r.lives.prolong(uid, r.now.Add(limits.TTL)) // which other replicas are told
	}
	if ready := pod.GetReadyTime(); ready != nil && !pod.GetAdopted() {
		r.lives.prolong(uid, ready.AsTime().Add(limits.TTL))
	}
	limit := r.config.ScanInterval + 2*time.Second
	if starting {
		limit += limits.ReadyTimeout // the minimum may need it
	}
	over := r.now.Sub(r.lives[uid])
	if uid != "" && over > limit && (starting || pod.GetState() == podmanagerv1.Pod_STATE_READY) {
		return fmt.Errorf("pod %s outlives its time by %s", pod.GetName(), over)
	}
	return nil
}

// used writes down that a pod lives for its time to live from now on.
func (r *referee) used(uid string) {
	for f, p := range r.pools {
		for _, pod := range p.GetPods() {
			if pod.GetUid() == uid {
				r.lives.prolong(uid, r.now.Add(r.limits(f).TTL))
			}
		}
	}
}
