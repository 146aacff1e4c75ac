// SPDX-License-Identifier: Apache-2.0

package pool

import "time"

// Function identifies a pool: its pods run this image.
type Function struct {
	// Reference is the canonical image name with tag, without digest.
	Reference string
	// Digest is the digest of the tag at the time of the request. A tag that moves leads to a new pool, and the pods of
	// the former pool expire.
	Digest string
}

// Limits are the settings of a function's pool. Zero pods, waitlist or concurrency count as 1.
type Limits struct {
	// MaxPods is the maximum number of pods. Draining pods do not count, because their successors do not wait for them.
	// While an outdated pod is replaced, a further pod may exist.
	MaxPods int
	// MaxWaitlistLength is the maximum number of leases per pod, granted or waiting, before a further pod is created.
	MaxWaitlistLength int
	// MaxConcurrency is the maximum number of leases per pod.
	MaxConcurrency int
	// MaxQueue is the maximum number of waiting leases.
	MaxQueue int
	// TTL is the time to live of an unused pod, at least minTTL.
	TTL time.Duration
	// ReadyTimeout is the time within which a pod with a node must become ready.
	ReadyTimeout time.Duration
	// Settings is the version of the settings next to the template that shape new pods.
	Settings string
}

// Config configures all pools.
type Config struct {
	// Limits returns the limits of a function. It must be pure.
	Limits func(Function) Limits
	// ScanInterval is the interval of garbage collection.
	ScanInterval time.Duration
	// SchedulingTimeout is the time without a node after which waiting leases are rejected.
	SchedulingTimeout time.Duration
	// InProcess is true if callers are in the same process and cannot call other replicas.
	InProcess bool
	// Template is the version of the pod template for new pods. It is empty while the template is unknown; no pod is
	// outdated then.
	Template string
	// PodName returns the name of the pod in a slot, after the pod with the UID predecessor. It must be pure, so that
	// replicas that fill the same slot choose the same name. Names must be unique per function and slot.
	PodName func(f Function, slot int, predecessor string) string
	// PodID returns the id of the pod in a slot, by which its Service selects the pod. It must be pure. Slots of
	// different functions may share an id.
	PodID func(f Function, slot int) string
}

// limitsOf returns the limits of a function, each at least 1: with a zero limit callers would wait forever.
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

// version identifies the sources of a pod: a template, and settings next to it. Pods of an earlier release have an
// empty settings version, which differs from each current version.
type version struct{ template, settings string }
