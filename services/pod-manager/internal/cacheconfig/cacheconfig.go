// Package cacheconfig reads pod-cache-config.yaml: which functions get pods at the
// start, and what is different for them.
package cacheconfig

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Entry is one function. A setting of zero is not set: the service's own applies.
type Entry struct {
	// Image is the function's canonical name.
	Image string
	// TTL is how long an unused pod lives.
	TTL time.Duration
	// MaxWaitlistLength is how many evaluations there may be for each pod before a
	// further pod is started.
	MaxWaitlistLength int
	// MaxPods is how many pods the function may have.
	MaxPods int
	// MaxConcurrency is how many evaluations one pod may run at once.
	MaxConcurrency int
	// MaxQueue is how many evaluations may wait.
	MaxQueue int
	// ReadyTimeout is how long a pod may take to become ready.
	ReadyTimeout time.Duration
	// Resources are the function container's; nil if not set.
	Resources *corev1.ResourceRequirements
}

// Parse returns the entries in their order. Both formats are known: a map of image to
// time to live, and a list of objects. Names without slash are looked up under
// defaultPrefix. The warnings are sentences for people about what is ignored, such as
// a second entry for an image. An error names each entry that is wrong; there are no
// entries then.
func Parse(_ []byte, _ string) (entries []Entry, warnings []string, err error) {
	return nil, nil, nil
}
