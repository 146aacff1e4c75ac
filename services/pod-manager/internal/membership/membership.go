// SPDX-License-Identifier: Apache-2.0

// Package membership tracks the replicas of the pod-manager, so that each function has a single owner.
//
// Each replica renews its own Lease every 3 seconds and then lists the Leases of its peers. A replica considers a peer
// alive while the peer's Lease keeps changing. A replica that fails to renew its Lease gives up ownership before its
// peers declare it dead. view and owners are pure; keeper calls the Kubernetes API.
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
	// renewInterval is the interval at which this replica renews its Lease.
	renewInterval = 3 * time.Second
	// retryInterval is the delay before the next cycle after a failed renewal or list.
	retryInterval = time.Second
	// minPause is the minimum delay between two cycles. A cycle is a renewal and a list.
	minPause = 100 * time.Millisecond
	// requestTimeout limits each request to the Kubernetes API.
	requestTimeout = 5 * time.Second
	// actsFor is the time for which a replica acts as an owner after a renewal. It starts when the request is sent.
	// It is shorter than aliveFor, which starts when a peer observes the renewal. It is long enough for a renewal and
	// a list that need 2.5 s each.
	actsFor = 10 * time.Second
)

// Config configures a Keeper.
type Config struct {
	Leases coordinationv1client.LeaseInterface
	// Replica is this replica's name, a unique DNS label.
	Replica string
	// Address is this replica's address for gateways, as host:port. It is empty if gateways cannot reach it.
	Address string
	// Holder identifies this process among the processes with the same name. It is random if empty.
	Holder string
	// Starting is the reason that this replica owns no functions until [Keeper.Started] is called, as long as
	// other replicas can own them. If it is empty, this replica owns functions from the start.
	Starting string
	// Now returns monotonic time.
	Now func() time.Time
	// Changed is called when the owners of functions change. Calls do not overlap.
	Changed func(Owners)
	Log     *slog.Logger
	Meter   metric.Meter
}

// Keeper renews this replica's Lease, and tracks its peers. Use [New], and call Run while the Keeper is used.
type Keeper struct {
	config Config
	wake   chan struct{} // capacity 1
	joined chan struct{}
	last   *coordinationv1.Lease // last version written or read by this replica, used by Run only
	// refusal is the current delay between two attempts while the rights on Leases are missing. Only Run uses it.
	refusal time.Duration

	mu        sync.Mutex
	me        Member
	began     time.Time // start of Run
	renewed   time.Time // request time of the last renewal, zero before the first renewal
	fenced    bool      // true if another process holds the Lease
	starting  string    // reason for not serving yet, else empty
	unable    string    // reason of StandDown
	ending    string    // reason of the shutdown, else empty
	alone     bool      // true if the Kubernetes API rejects this replica's Lease
	failure   error     // error of the last cycle
	listed    bool      // true after the first list of Leases
	view      *view
	published Owners
}

// New returns a keeper. It does not send requests yet.
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

// Reasons for which a replica owns no functions. notJoined applies right after its start, and apiFailed while it
// cannot renew its Lease.
const (
	notJoined = "this replica has not written its Lease yet"
	apiFailed = "the Kubernetes API cannot do it now"
)

// randomSuffix returns a suffix that distinguishes the successive processes of a replica.
func randomSuffix() string {
	const digits = "bcdfghjklmnpqrstvwxz2456789"
	suffix := make([]byte, 8)
	for i := range suffix {
		suffix[i] = digits[rand.IntN(len(digits))] //nolint:gosec // it protects nothing
	}
	return string(suffix)
}

// Run renews the Lease until ctx is done. It then deletes the Lease, so that peers take over this replica's functions
// at once.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.deleteOwnLease(ctx)
	k.mu.Lock()
	k.began = k.config.Now()
	k.mu.Unlock()
	for {
		begin := k.config.Now()
		next := k.renewAndList(ctx)
		// The delay starts at the beginning of the cycle, because a cycle is long if the Kubernetes API is slow.
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

// renewAndList renews the Lease, lists all Leases, and returns the delay until the next cycle.
func (k *Keeper) renewAndList(ctx context.Context) time.Duration {
	err := k.renewLease(ctx)
	if err == nil || (isRefusal(err) && !apierrors.IsForbidden(err)) {
		err = cmp.Or(err, k.listLeases(ctx)) // even without its Lease, this replica needs the list of its peers
	}
	next := k.recordCycle(ctx, err)
	k.publishOwners()
	return next + time.Duration(rand.Int64N(int64(next)/10)) //nolint:gosec // it only spreads the load
}

// publishOwners calls Changed if the owners of functions changed, and logs when this replica begins or stops to own
// functions.
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

// Joined returns a channel that closes when this replica is a member, or runs without membership. Changed has been
// called by then. It takes at most joinTimeout and an attempt to renew the Lease.
func (k *Keeper) Joined() <-chan struct{} { return k.joined }

// StandDown makes this replica own no functions, for a reason. An empty reason makes it own functions again. Peers
// notice the change within seconds.
func (k *Keeper) StandDown(reason string) { k.standDown(func() { k.unable = reason }) }

// Started ends the effect of [Config.Starting], so that this replica may own functions.
func (k *Keeper) Started() { k.standDown(func() { k.starting = "" }) }

// Leave makes this replica own no functions for the rest of its life, for a reason.
func (k *Keeper) Leave(reason string) { k.standDown(func() { k.ending = reason }) }

// standDown applies a change to the reasons that this replica owns no functions, and writes the Lease if the
// effective reason changed.
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

// Owners returns the current owners of functions.
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

// lostReason returns the reason that this replica cannot act as a member. It is empty if the replica can. The
// caller must hold the lock.
func (k *Keeper) lostReason(now time.Time) string {
	switch {
	case k.fenced:
		return "another process holds the Lease of this replica's name"
	case (k.renewed.IsZero() || !k.listed) && !k.isOverdue(now):
		return notJoined
	case now.Sub(k.renewed) >= actsFor: // also for a replica that never listed, because joinTimeout is longer
		return apiFailed
	default:
		return ""
	}
}

// Owns reports whether this replica currently owns an image's function. Callers must call it before each deletion,
// because earlier results are outdated after a pause of the process.
func (k *Keeper) Owns(image string) bool { return k.Owners().Owner(image).Mine }
