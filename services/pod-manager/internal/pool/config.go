// SPDX-License-Identifier: Apache-2.0

package pool

import "time"

// Function identifies a function, and the pool whose pods run the function's image.
type Function struct {
	// Reference is the canonical image name with tag, without digest.
	Reference string
	// Digest is the digest of the tag at the time of the request. When the tag moves to another digest, requests lead
	// to a new pool, and the pods of the former pool expire.
	Digest string
}

// Limits contains the settings of a function's pool. If MaxPods, MaxWaitlistLength or MaxConcurrency is zero, it
// counts as 1.
type Limits struct {
	// MaxPods is the maximum number of usable pods. Draining pods do not count, because new pods do not wait until
	// draining pods are gone. While an outdated pod is replaced, one more pod may exist.
	MaxPods int
	// MaxWaitlistLength is the number of leases per pod, granted or waiting, above which a further pod is created.
	MaxWaitlistLength int
	// MaxConcurrency is the maximum number of leases per pod.
	MaxConcurrency int
	// MaxQueue is the maximum number of waiting leases.
	MaxQueue int
	// TTL is the time to live of an unused pod, at least minTTL.
	TTL time.Duration
	// ReadyTimeout is the time within which a pod with a node must become ready.
	ReadyTimeout time.Duration
	// Settings is the version of all settings other than the template that shape new pods.
	Settings string
}

// Config configures all pools.
type Config struct {
	// Limits returns the limits of a function. It must be a pure function.
	Limits func(Function) Limits
	// ScanInterval is the interval of garbage collection.
	ScanInterval time.Duration
	// SchedulingTimeout is the time after which a pod without a node makes waiting leases fail.
	SchedulingTimeout time.Duration
	// InProcess is true if callers are in the same process and cannot call other replicas.
	InProcess bool
	// Template is the version of the pod template for new pods. It is empty while the template is unknown. In this
	// time, no pod counts as outdated.
	Template string
	// PodName returns the name of a new pod in a slot. predecessor is the UID of the former pod in the slot. It must
	// be a pure function, so that replicas that fill the same slot choose the same name. Different functions and
	// slots must have different names.
	PodName func(f Function, slot int, predecessor string) string
	// PodID returns the id of the pod in a slot. The pod's Service selects the pod by this id. It must be a pure
	// function. Slots of different functions may share an id.
	PodID func(f Function, slot int) string
}

// limitsOf returns the limits of a function. It raises zero limits to 1, because otherwise callers would wait
// forever.
func (c Config) limitsOf(f Function) Limits {
	l := c.Limits(f)
	l.MaxPods = max(l.MaxPods, 1)
	l.MaxWaitlistLength = max(l.MaxWaitlistLength, 1)
	l.MaxConcurrency = max(l.MaxConcurrency, 1)
	l.TTL = max(l.TTL, minTTL)
	return l
}

// version returns the current version for new pods of a function.
func (c Config) version(l Limits) version { return version{c.Template, l.Settings} }

// version identifies the template and the other settings from which a pod was built. Pods that an earlier release
// created have an empty settings version, which differs from every current version.
type version struct{ template, settings string }
