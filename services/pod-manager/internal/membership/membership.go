// SPDX-License-Identifier: Apache-2.0

// Package membership lets the replicas of the pod-manager know each other, so that each
// function has one owner among them.
//
// Each replica has a Lease object, which it writes every few seconds; each time, it lists the Leases of
// all others. A replica is alive for as long as a reader sees its Lease change. One that
// cannot write its own stops acting as an owner before the others stop counting it as alive.
// view and owners are pure; keeper talks to the Kubernetes API.
package membership

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

const (
	// renewInterval is the time between two writes of this replica's Lease.
	renewInterval = 3 * time.Second
	// retryInterval is the time after a write or a list that failed.
	retryInterval = time.Second
	// minPause is the least time between two cycles.
	minPause = 100 * time.Millisecond
	// requestTimeout bounds one request.
	requestTimeout = 5 * time.Second
	// actsFor is how long after its last write a replica acts as an owner. It begins when the write was sent, and is
	// shorter than aliveFor, which begins when another replica saw the write. A write and a list that take 2.5 s each
	// fit between two writes.
	actsFor = 10 * time.Second
)

// Config is what a Keeper is made of.
type Config struct {
	Leases coordinationv1client.LeaseInterface
	// Replica is this replica's name. It has to be a DNS label that no other one has.
	Replica string
	// Address is where gateways reach this replica, as host:port; empty if they do not.
	Address string
	// Holder identifies this process among those of the same name; empty for a random one.
	Holder string
	// Starting is why this replica owns nothing until [Keeper.Started] is called, while other replicas do; empty if it
	// may own functions from the start.
	Starting string
	// Now is monotonic time.
	Now func() time.Time
	// Changed is called when functions are divided in another way. Calls do not overlap.
	Changed func(Owners)
	Log     *slog.Logger
	Meter   metric.Meter
}

// Keeper keeps this replica's Lease, and watches the others. Use [New]; Run has to run while
// it is used.
type Keeper struct {
	config Config
	wake   chan struct{} // has capacity 1
	joined chan struct{}
	last   *coordinationv1.Lease // as this replica wrote or read it last; only Run uses it
	// refusal is the last time between two attempts without rights; only Run uses it.
	refusal time.Duration

	mu        sync.Mutex
	me        Member
	began     time.Time // when Run was called
	renewed   time.Time // when the last successful write was sent; zero if there was none
	fenced    bool      // another process holds the Lease
	starting  string    // why this replica does not serve yet; empty if it does
	unable    string    // the reason of StandDown
	ending    string    // why this replica is about to end; empty if it is not
	alone     bool      // the Kubernetes API takes no Lease of this replica
	failure   error     // of the last attempt to write the Lease and list all; nil if it succeeded
	listed    bool      // all Leases were listed at least once
	view      *view
	published Owners
}

// New returns a keeper. It sends no request yet.
func New(config Config) (*Keeper, error) {
	if config.Holder == "" {
		config.Holder = config.Replica + "-" + randomSuffix()
	}
	k := &Keeper{
		config: config, wake: make(chan struct{}, 1), joined: make(chan struct{}), view: newView(),
		me:        Member{Name: config.Replica, Holder: config.Holder, Address: config.Address, StoodDown: config.Starting},
		starting:  config.Starting,
		published: Owners{shared: true, Lost: notJoined},
	}
	return k, k.registerMetrics(config.Meter)
}

// Why a replica owns nothing: right after its start, and while its Lease is not renewed.
const (
	notJoined = "this replica has not written its Lease yet"
	apiFailed = "the Kubernetes API cannot do it now"
)

// randomSuffix tells processes of one replica apart.
func randomSuffix() string {
	const digits = "bcdfghjklmnpqrstvwxz2456789"
	suffix := make([]byte, 8)
	for i := range suffix {
		suffix[i] = digits[rand.IntN(len(digits))] //nolint:gosec // it protects nothing
	}
	return string(suffix)
}

// Run keeps the Lease until ctx ends, then deletes it: other replicas take over at once.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.deleteOwnLease(ctx)
	k.mu.Lock()
	k.began = k.config.Now()
	k.mu.Unlock()
	for {
		begin := k.config.Now()
		next := k.renewAndList(ctx)
		// The time counts from the begin of a cycle, which takes long if the Kubernetes API is slow.
		timer := time.NewTimer(max(next-k.config.Now().Sub(begin), minPause))
		select {
		case <-timer.C:
		case <-k.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// renewAndList writes the Lease once, lists all, and returns when to do so again.
func (k *Keeper) renewAndList(ctx context.Context) time.Duration {
	err := k.renewLease(ctx)
	if err == nil || isRefusal(err) && !apierrors.IsForbidden(err) {
		err = cmp.Or(err, k.listLeases(ctx)) // without its Lease, this replica has to know who is alive
	}
	next := k.recordCycle(ctx, err)
	k.publishOwners()
	return next + time.Duration(rand.Int64N(int64(next)/10)) //nolint:gosec // it only spreads the load
}

// publishOwners reports the present division of functions if it is another one than before.
func (k *Keeper) publishOwners() {
	now := k.Owners()
	k.mu.Lock()
	before := k.published
	k.published = now
	k.mu.Unlock()
	switch {
	case before.Idle() == now.Idle():
	case now.Idle() != "":
		k.config.Log.Warn("this replica owns no functions; others take over", "reason", now.Idle(), "error", now.Cause)
	default:
		k.config.Log.Info("this replica owns functions", "replicas", now.Replicas())
	}
	if !now.equal(before) {
		k.config.Changed(now)
	}
	if before.Lost == notJoined && now.Lost != notJoined {
		close(k.joined)
	}
}

// Joined closes when it is known whether this replica is a member, after Changed was called: at
// the latest when joinTimeout and one attempt to write the Lease are over.
func (k *Keeper) Joined() <-chan struct{} { return k.joined }

// StandDown makes this replica own nothing, for a reason; an empty one ends that. Other replicas learn
// of it within seconds.
func (k *Keeper) StandDown(reason string) { k.standDown(func() { k.unable = reason }) }

// Started ends the time in which this replica owns nothing because it is starting.
func (k *Keeper) Started() { k.standDown(func() { k.starting = "" }) }

// Leave has this replica own nothing from now on, for a reason.
func (k *Keeper) Leave(reason string) { k.standDown(func() { k.ending = reason }) }

// standDown changes one of the reasons why this replica owns nothing.
func (k *Keeper) standDown(change func()) {
	k.mu.Lock()
	before := k.me.StoodDown
	change()
	k.me.StoodDown = cmp.Or(k.ending, k.unable, k.starting)
	changed := k.me.StoodDown != before
	k.mu.Unlock()
	if !changed {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Owners returns how functions are divided now.
func (k *Keeper) Owners() Owners {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.alone {
		return Owners{}
	}
	owners := newOwners(k.me, k.view.aliveMembers(k.me.Name), k.lostReason(k.config.Now()))
	if owners.Lost == apiFailed && k.failure != nil {
		owners.Cause = k.failure.Error()
	}
	return owners
}

// lostReason is why this replica must not act as a member. The caller holds the lock.
func (k *Keeper) lostReason(now time.Time) string {
	switch {
	case k.fenced:
		return "another process holds the Lease of this replica's name"
	case (k.renewed.IsZero() || !k.listed) && !k.isOverdue(now):
		return notJoined
	case !k.listed || now.Sub(k.renewed) >= actsFor:
		return apiFailed
	default:
		return ""
	}
}

// Owns reports whether this replica acts as the owner of an image's function right now. It
// is asked before each deletion: a process that stood still for a while must not act on what
// it knew before.
func (k *Keeper) Owns(image string) bool { return k.Owners().Owner(image).Mine }
