// SPDX-License-Identifier: Apache-2.0

package pool

import "time"

// Function identifies a pool: its pods run this image.
type Function struct {
	// Reference is the canonical image name with tag, without digest.
	Reference string
	// Digest is what the tag meant when the lease was asked for. A tag that moves leads to a new pool; the pods of the
	// former one expire.
	Digest string
}

// Limits are the settings of one function's pool. Zero pods, waitlist or concurrency count as one.
type Limits struct {
	// MaxPods is how many pods the pool may have. Draining pods are not counted: their successors do not wait for them.
	// While an outdated pod is replaced, there may be one more.
	MaxPods int
	// MaxWaitlistLength is how many leases, granted or waiting, there may be for each pod before a further pod is
	// created.
	MaxWaitlistLength int
	// MaxConcurrency is how many leases one pod may hold at once.
	MaxConcurrency int
	// MaxQueue is how many leases may wait.
	MaxQueue int
	// TTL is how long an unused pod lives, at least minTTL.
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
	// ScanInterval is the time between two searches for pods to collect.
	ScanInterval time.Duration
	// SchedulingTimeout is how long a pod may be without a node before waiting leases are rejected.
	SchedulingTimeout time.Duration
	// InProcess is true if callers are in the same process, and can ask no other replica.
	InProcess bool
	// Template is the version of the pod template for new pods; empty while it is not known, which makes no pod
	// outdated.
	Template string
	// PodName names the pod in a slot that follows the one with the UID predecessor. It must be pure: replicas that fill
	// the same slot choose the same name. Each function and slot must have names of their own.
	PodName func(f Function, slot int, predecessor string) string
	// PodID returns the id of the pod in a slot, by which its Service finds it. It must be pure. Slots of different
	// functions may have the same one.
	PodID func(f Function, slot int) string
}

// limitsOf returns the limits of a function. There is one of everything at least: none would have callers wait for
// ever.
func (c Config) limitsOf(f Function) Limits {
	l := c.Limits(f)
	l.MaxPods = max(l.MaxPods, 1)
	l.MaxWaitlistLength = max(l.MaxWaitlistLength, 1)
	l.MaxConcurrency = max(l.MaxConcurrency, 1)
	l.TTL = max(l.TTL, minTTL)
	return l
}

// version is what new pods of a function are made from.
func (c Config) version(l Limits) version { return version{c.Template, l.Settings} }

// version is what a pod is made from: a template, and settings beside it. A pod that an earlier version of this
// program made has no settings version, which equals none that comes now.
type version struct{ template, settings string }
