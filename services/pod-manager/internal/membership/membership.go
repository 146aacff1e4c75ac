// SPDX-License-Identifier: Apache-2.0

// Package membership tracks the replicas of the pod-manager, so that each function has an owner.
//
// Each replica renews its own Lease every 3 seconds, and then lists the Leases of its peers. A peer counts as alive
// while its Lease keeps changing. A replica that fails to renew its Lease gives up its functions (stands down) at about
// the time when its peers declare it dead. Replicas may disagree for seconds, so that two replicas own the same
// function. This is harmless, because both choose the same names for new pods, and deleted pods complete their
// evaluations.
//
// The files view and owners contain only pure functions; Keeper calls the Kubernetes API.
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

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// renewInterval is the interval at which this replica renews its Lease.
	renewInterval = 3 * time.Second
	// retryInterval is the delay before the next renewal after a failed request.
	retryInterval = time.Second
	// maxRightsInterval is the maximum delay between renewals while this program lacks rights on Leases. The delays start
	// at a second (retryInterval), because an API server that has just started may refuse requests that it allows later.
	maxRightsInterval = 15 * time.Minute
	// minPause is the minimum pause between two renewals, even if the Kubernetes API is slow.
	minPause = 100 * time.Millisecond
	// cycleTimeout limits a renewal of the Lease and the following list of Leases. It permits 2.5 s for each request.
	cycleTimeout = 6 * time.Second
)

// Config configures a Keeper.
type Config struct {
	Leases coordinationv1client.LeaseInterface
	// Replica is this replica's name, a unique DNS label.
	Replica string
	// Address is the address where gateways reach this replica, as host:port. It is empty if gateways cannot reach
	// it.
	Address string
	// Starting is the reason that this replica owns no functions until [Keeper.Started] is called. It has no effect if
	// this is the only replica. If Starting is empty, this replica may own functions at once.
	Starting string
	// Now returns monotonic time.
	Now func() time.Time
	// Changed is called with the new owners of functions after each change. Calls do not overlap.
	Changed func(Owners)
	Log     *slog.Logger
	Meter   metric.Meter
}

// Keeper renews this replica's Lease and tracks the other living replicas while [Keeper.Run] runs.
type Keeper struct {
	config Config
	wake   chan struct{} // wakes Run, has capacity 1
	joined chan struct{}
	last   *coordinationv1.Lease // last version written by this replica, used by Run only
	failed bool                  // true if the last renewal or list failed, used by Run only
	denied retry.Backoff         // delays while the rights on Leases are missing, used by Run only

	mu        sync.Mutex
	me        Member
	renewed   time.Time // request time of the last renewal, or the start of Run
	starting  string    // reason for not serving yet, or empty
	unable    string    // argument of the last StandDown
	ending    string    // reason of the shutdown, or empty
	view      view
	forbidden bool // true if rights on Leases were missing at the last renewal or list
	published Owners
}

// New returns a Keeper. It sends no requests before [Keeper.Run].
func New(config Config) *Keeper {
	k := &Keeper{
		config: config, wake: make(chan struct{}, 1), joined: make(chan struct{}),
		me:       Member{Name: config.Replica, Address: config.Address, StoodDown: config.Starting},
		starting: config.Starting, denied: retry.Backoff{First: retryInterval, Max: maxRightsInterval},
	}
	k.registerMetrics(config.Meter)
	return k
}

// Run renews the Lease until ctx is done. It then deletes the Lease, so that peers take over the functions at once.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.deleteOwnLease(ctx)
	k.recordRenewal(k.config.Now())
	for began := k.config.Now(); ; {
		begin := k.config.Now()
		err := k.renewAndList(ctx)
		k.logFailure(ctx, err)
		k.publishOwners()
		if err == nil || apierrors.IsForbidden(err) || k.config.Now().Sub(began) >= aliveFor {
			k.join()
		}
		next := k.delayAfter(err)
		next += time.Duration(rand.Int64N(int64(next) / 10)) //nolint:gosec // it only spreads the load
		// The delay counts from the start of this renewal, which lasts long if the Kubernetes API is slow.
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

// renewAndList renews this replica's Lease, and then lists the Leases of all replicas. It skips the list if the renewal
// was forbidden. If a request is still forbidden 15 s (aliveFor) after the last list, this replica forgets its peers,
// and owns all functions. The requests continue after ctx is done. Otherwise, the version of the Lease would be unknown
// after a cancelled write, and Run could not delete the Lease.
func (k *Keeper) renewAndList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cycleTimeout)
	defer cancel()
	err := k.renewLease(ctx)
	if !apierrors.IsForbidden(err) {
		err = cmp.Or(err, k.listLeases(ctx))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forbidden = apierrors.IsForbidden(err)
	if k.forbidden && k.config.Now().Sub(k.view.at) >= aliveFor {
		k.view = view{}
	}
	return err
}

// delayAfter returns the delay until the next renewal. err is the error of the last renewal or list.
func (k *Keeper) delayAfter(err error) time.Duration {
	if apierrors.IsForbidden(err) {
		return k.denied.Next()
	}
	k.denied.Reset()
	if err != nil {
		return retryInterval
	}
	return renewInterval
}

// logFailure logs the first of consecutive failures to renew or list Leases, and the first success after them.
func (k *Keeper) logFailure(ctx context.Context, err error) {
	switch {
	case err != nil && !k.failed:
		k.config.Log.WarnContext(ctx, "Lease not renewed, retrying",
			"needs", "the Role of deploy/components/function-pods", "error", err)
	case err == nil && k.failed:
		k.config.Log.InfoContext(ctx, "Lease renewed again")
	}
	k.failed = err != nil
}

// publishOwners calls Changed if the owners changed, and logs when this replica starts or stops owning functions.
func (k *Keeper) publishOwners() {
	now := k.Owners()
	k.mu.Lock()
	before := k.published
	k.published = now
	k.mu.Unlock()
	switch {
	case before.shared == now.shared && before.StoodDown == now.StoodDown:
	case now.StoodDown != "":
		k.config.Log.Warn("this replica owns no functions; other replicas take over", "reason", now.StoodDown)
	default:
		k.config.Log.Info("this replica owns functions", "membership", now.shared, "replicas", now.Replicas())
	}
	if !now.equal(before) {
		k.config.Changed(now)
	}
}

// join closes the channel that [Keeper.Joined] returns.
func (k *Keeper) join() {
	if !k.hasJoined() {
		close(k.joined)
	}
}

func (k *Keeper) hasJoined() bool {
	select {
	case <-k.joined:
		return true
	default:
		return false
	}
}

// Joined returns a channel that closes once this replica has determined the owners of functions. It also closes if
// rights on Leases are missing, and at the latest after 21 s (aliveFor plus cycleTimeout).
func (k *Keeper) Joined() <-chan struct{} { return k.joined }

// StandDown hands over this replica's functions to its peers within seconds. reason is shown to users. An empty reason
// permits this replica to own functions again.
func (k *Keeper) StandDown(reason string) { k.standDown(func() { k.unable = reason }) }

// Started permits this replica to own functions after its start. From now on, [Config.Starting] has no effect.
func (k *Keeper) Started() { k.standDown(func() { k.starting = "" }) }

// shuttingDown is the reason that a replica owns no functions after [Keeper.Leave].
const shuttingDown = "this pod-manager is shutting down"

// Leave ends this replica's ownership of functions until the process exits.
func (k *Keeper) Leave() { k.standDown(func() { k.ending = shuttingDown }) }

// standDown updates the reason that this replica owns no functions. After a change, the Lease is written at once to
// inform peers.
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

// notRenewed is the reason that a replica whose Lease is not renewed owns no functions. It applies after 15 s
// (aliveFor), when the peers consider the replica dead.
const notRenewed = "the Kubernetes API does not renew the Lease of this replica"

// Problems returns the reasons that living replicas cannot own functions, each as "replica: reason". Either the Lease
// of this replica is not renewed, or no function pod answers a replica. The start and the shutdown of a replica are no
// problems. Each replica also returns the problems of its peers, because Kubernetes sends no requests to a replica that
// has stood down.
func (k *Keeper) Problems() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var problems []string
	for _, m := range append(k.view.aliveMembers(k.me.Name), k.self()) {
		if m.StoodDown != "" && m.StoodDown != k.config.Starting && m.StoodDown != shuttingDown {
			problems = append(problems, m.Name+": "+m.StoodDown)
		}
	}
	return problems
}

// Owners returns the current owners of functions. Before the first list of Leases, this replica owns all functions. It
// also owns all functions if it has lacked the right to list Leases for 15 s (aliveFor).
func (k *Keeper) Owners() Owners {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.view.at.IsZero() {
		return Owners{}
	}
	return newOwners(k.self(), k.view.aliveMembers(k.me.Name))
}

// self returns this replica, which has also stood down if its Lease is not renewed. Before the first list of Leases, no
// Lease is overdue. The caller must hold the lock.
func (k *Keeper) self() Member {
	self := k.me
	if !k.view.at.IsZero() && k.isOverdue() {
		self.StoodDown = notRenewed
	}
	return self
}

// isOverdue reports whether the last renewal of this replica is so old that peers consider the replica dead. The caller
// must hold the lock.
func (k *Keeper) isOverdue() bool { return k.config.Now().Sub(k.renewed) >= aliveFor }

// Owns reports whether this replica owns an image's function according to a recent list of Leases. It returns false if
// the last list is too old. Without the right to list Leases, the age of the list does not matter. Callers must call
// Owns right before each deletion of a pod, because an earlier result may be outdated after a pause of the process.
func (k *Keeper) Owns(image string) bool { return k.isCurrent() && k.Owners().Owner(image).Mine }

// isCurrent reports whether the last list of Leases is recent. It also returns true if Kubernetes forbids the list.
func (k *Keeper) isCurrent() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.forbidden || k.config.Now().Sub(k.view.at) < aliveFor
}
