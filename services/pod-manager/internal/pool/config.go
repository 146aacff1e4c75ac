// SPDX-License-Identifier: Apache-2.0

package pool

import "time"

// Function identifies a function by its image. Each Function has a pool of pods that run the image.
type Function struct {
	// Reference is the canonical image name with tag, without digest.
	Reference string
	// Digest is the digest of the tag at the time of the request. When the tag moves to another digest, requests use a
	// new pool, and the pods of the former pool expire.
	Digest string
}

// Limits restricts a function's pods and leases. Zero counts as 1 in MaxPods, MaxWaitlistLength and MaxConcurrency.
type Limits struct {
	// MaxPods is the maximum number of usable pods, which accept leases now or later. Draining pods do not count. Their
	// successors can therefore be created at once. While an outdated pod is replaced, one more pod may exist.
	MaxPods int
	// MaxWaitlistLength is the maximum number of leases per pod, granted or waiting. If there are more leases, a
	// further pod is created, up to MaxPods.
	MaxWaitlistLength int
	// MaxConcurrency is the maximum number of concurrent leases on a pod.
	MaxConcurrency int
	// MaxQueue is the maximum number of waiting leases. Further requests are rejected.
	MaxQueue int
	// TTL is the time from the last use of a pod to its deletion. The minimum is 5 s (minTTL).
	TTL time.Duration
	// ReadyTimeout is the maximum time from the scheduling of a pod to its readiness.
	ReadyTimeout time.Duration
	// Settings is the version of a pod's settings, such as its memory limit. Pods with another version are outdated.
	Settings string
}

// Config configures all pools.
type Config struct {
	// Limits returns the limits of a function. It must be a pure function.
	Limits func(Function) Limits
	// ScanInterval is the interval of scans for expired pods and for pods above MaxPods.
	ScanInterval time.Duration
	// SchedulingTimeout is the time after which waiting leases fail if their pod is not scheduled to a node.
	SchedulingTimeout time.Duration
	// InProcess is true if callers run in this process. They cannot be redirected to other replicas.
	InProcess bool
	// Template is the version of the template for new pods. While it is empty, the template is unknown, and no pod counts
	// as outdated.
	Template string
	// PodName returns the name of a new pod. slot is the number of the pod within its pool. predecessor is the UID of the
	// previous pod in this slot, or empty. PodName must be a pure function, so that all replicas choose the same name.
	// Names of different functions and slots must differ.
	PodName func(f Function, slot int, predecessor string) string
	// PodID returns the id by which a Service selects a pod. slot is the number of the pod within its pool. PodID must be
	// a pure function. It may return the same id for different functions.
	PodID func(f Function, slot int) string
}

// limitsOf returns the limits of a function. It raises zero limits to 1, so that callers do not wait forever.
func (c Config) limitsOf(f Function) Limits {
	l := c.Limits(f)
	l.MaxPods = max(l.MaxPods, 1)
	l.MaxWaitlistLength = max(l.MaxWaitlistLength, 1)
	l.MaxConcurrency = max(l.MaxConcurrency, 1)
	l.TTL = max(l.TTL, minTTL)
	return l
}

// version identifies the template and settings of a pod. A pod from an earlier release has no settings version, and so
// never has the current version.
type version struct{ template, settings string }
