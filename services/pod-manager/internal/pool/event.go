// SPDX-License-Identifier: Apache-2.0

package pool

import "time"

// Event is something that happened. Events may come late, twice, or not at all; those about
// one pod come in order. Observations that do not are ignored as far as their versions show.
type Event interface{ apply(m *Machine) }

// LeaseID identifies a lease. The owner of the machine never uses one twice.
type LeaseID uint64

// LeaseRequested asks for a lease. It is answered by one [Grant] or one [Reject], with any
// number of [Report] before, unless [LeaseEnded] comes first.
type LeaseRequested struct {
	Lease    LeaseID
	Function Function
	// Avoid are the names of pods that failed this caller before.
	Avoid []string
}

// LeaseEnded ends a lease, granted or waiting. It is ignored for one that is not known.
type LeaseEnded struct {
	Lease LeaseID
	// Broken is what was wrong with the pod; empty if nothing was.
	Broken string
}

// PodObserved is a pod as Kubernetes shows it: after this machine created it, when it is
// found, and whenever it changes.
type PodObserved struct{ Observation }

// Observation is a pod as Kubernetes shows it.
type Observation struct {
	Name, UID, ResourceVersion string
	Function                   Function
	Slot                       int
	// TemplateVersion and SettingsVersion are empty if the pod does not have them.
	TemplateVersion, SettingsVersion string
	Created                          time.Time
	// ReclaimAfter is the pod's expiry; zero if it has none, or an unreadable one.
	ReclaimAfter time.Time

	// Phase is the step on the way to readiness. PhaseConnecting means that the pod's
	// containers run.
	Phase Phase
	// Reason is more about the phase, for people.
	Reason string
	// Address is where the wrapper server will listen, as host:port; empty while the pod
	// has none.
	Address string
	// HealthAddress is where its health is asked for; empty for Address.
	HealthAddress string
	Node          string
	// Deleting reports whether Kubernetes is deleting the pod.
	Deleting bool
	// Problem is what keeps the pod from serving.
	Problem Problem
}

// running reports whether the containers of a pod run.
func (o Observation) running() bool { return o.Phase == PhaseConnecting && o.Address != "" }

// Phase is a step on the way to a lease. Later steps are greater.
type Phase int

// The phases, in their order.
const (
	PhaseUnknown    Phase = iota
	PhaseQueued           // all pods are busy, and no further one is allowed
	PhaseResolving        // the image is being looked up
	PhaseCreating         // the pod is being created
	PhaseScheduling       // the pod has no node yet
	PhasePulling          // the node pulls images
	PhaseStarting         // containers start
	PhaseConnecting       // the wrapper server is asked for its health
)

// String returns the phase's name.
func (p Phase) String() string {
	return [...]string{"unknown", "queued", "resolving", "creating", "scheduling", "pulling", "starting", "connecting"}[p]
}

// Problem is what keeps a pod from serving.
type Problem struct {
	Kind ProblemKind
	// Reason is the kubelet's or scheduler's own words.
	Reason string
	// OutOfMemory reports whether the kernel killed the pod for memory.
	OutOfMemory bool
}

// ProblemKind is what a problem means for waiting leases.
type ProblemKind int

const (
	// None is no problem.
	None ProblemKind = iota
	// Stuck is a pod that may become ready by itself, such as one that fits on no node now.
	Stuck
	// Held is a pod that becomes ready by itself too, as soon as the Kubernetes API
	// recovers: nothing has to be changed.
	Held
	// Lost is a pod that ended for reasons of its own, such as an eviction: another one
	// may well succeed.
	Lost
	// Fatal is a pod that cannot become ready, and neither can another one like it, such
	// as one whose image cannot be pulled.
	Fatal
)

// open reports whether the pod may become ready by itself.
func (k ProblemKind) open() bool { return k == Stuck || k == Held }

// broken reports whether it will not.
func (k ProblemKind) broken() bool { return k == Lost || k == Fatal }

// ForeignObserved is a pod of another function runner, which has an id like ours: a Service
// of that name leads to it.
type ForeignObserved struct{ Name, ID string }

// PodGone is a pod that does not exist any more, of this function runner or another.
type PodGone struct{ Name, UID string }

// CreateFailed is a pod that could not be created. It may exist all the same.
type CreateFailed struct {
	Name    string
	Problem Problem
}

// DeleteFailed is a pod that could not be deleted, for instance because it changed after
// that was decided.
type DeleteFailed struct{ Name, UID, Reason string }

// Probed is the answer of a pod's wrapper server to [Probe].
type Probed struct {
	Name, UID string
	// Question is the Probe's. Answers to earlier ones come too late.
	Question uint64
	// Unhealthy is why it does not serve; empty if it does.
	Unhealthy string
}

// MinPodsSet has the pool of a function keep at least so many pods, whether or not a lease
// needs them, until another event changes that. Pods beyond the limit of the pool, or of
// all pools, are not created for it.
type MinPodsSet struct {
	Function Function
	Pods     int
}

// Configured replaces the configuration.
type Configured struct{ Config Config }

// Tick is a second that has passed.
type Tick struct{}

// Function identifies a pool: its pods run this image.
type Function struct {
	// Reference is the canonical image name with tag, without digest.
	Reference string
	// Digest is what the tag meant when the lease was asked for. A tag that moves leads
	// to a new pool; the pods of the former one expire.
	Digest string
}

// Limits are the settings of one function's pool. Zero pods, waitlist or concurrency count
// as one.
type Limits struct {
	// MaxPods is how many pods the pool may have. Draining pods are not counted: their
	// successors do not wait for them.
	MaxPods int
	// MaxWaitlistLength is how many leases, granted or waiting, there may be for each pod
	// before a further pod is created.
	MaxWaitlistLength int
	// MaxConcurrency is how many leases one pod may hold at once.
	MaxConcurrency int
	// MaxQueue is how many leases may wait.
	MaxQueue int
	// TTL is how long an unused pod lives: five seconds at least, so that replicas learn
	// that a pod is in use before it expires.
	TTL time.Duration
	// ReadyTimeout is how long a pod may take to become ready.
	ReadyTimeout time.Duration
	// Settings is the version of what shapes new pods beside the template.
	Settings string
}

// Config is the settings of all pools.
type Config struct {
	// Limits returns the limits of a function. It must be pure.
	Limits func(Function) Limits
	// MaxPods is how many pods there may be in all pools, draining and deleting ones
	// included; 0 means any number.
	MaxPods int
	// MaxWaiting is how many leases may wait in all pools. Beyond it the last one in the
	// longest queue is rejected.
	MaxWaiting int
	// ScanInterval is the time between two searches for pods to collect.
	ScanInterval time.Duration
	// SchedulingTimeout is how long a pod may be unschedulable before waiting leases are
	// rejected.
	SchedulingTimeout time.Duration
	// Template is the version of the pod template for new pods; empty while it is not
	// known, which makes no pod outdated.
	Template string
	// PodName names the pod in a slot that follows the one with the UID predecessor. It
	// must be pure: replicas that fill the same slot choose the same name. Each function
	// and slot must have names of their own.
	PodName func(f Function, slot int, predecessor string) string
	// PodID returns the id of the pod in a slot, by which its Service finds it. It must
	// be pure. Slots of different functions may have the same one.
	PodID func(f Function, slot int) string
}

// limits returns the limits of a function. There is one of everything at least: none would
// have callers wait for ever.
func (c Config) limits(f Function) Limits {
	l := c.Limits(f)
	l.MaxPods = max(l.MaxPods, 1)
	l.MaxWaitlistLength = max(l.MaxWaitlistLength, 1)
	l.MaxConcurrency = max(l.MaxConcurrency, 1)
	l.TTL = max(l.TTL, extensionDelay)
	return l
}

// version is what new pods of a function are made from.
func (c Config) version(l Limits) version { return version{c.Template, l.Settings} }

// version is what a pod is made from: a template, and settings beside it. A pod that an
// earlier version of this program made has no settings version, which equals none that
// comes now.
type version struct{ template, settings string }
