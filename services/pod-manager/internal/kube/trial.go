// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Trial checks image volume support of nodes where only that of the API server is known: the
// first pods show it. A nil Trial checks nothing.
type Trial struct {
	passed atomic.Bool
	once   sync.Once
	failed func(words string)
}

// NewTrial returns a trial that calls failed once, with the kubelet's words, if nodes
// cannot mount images. Pods created after that have to use another launcher.
func NewTrial(failed func(words string)) *Trial { return &Trial{failed: failed} }

// judge returns the problem of a pod for its waiting leases. A failure that the image volume
// caused is not final: the next pod does not use one.
func (t *Trial) judge(pod *corev1.Pod, problem pool.Problem) pool.Problem {
	if t == nil {
		return problem
	}
	switch launch := podspec.LaunchOf(pod); {
	case launch == podspec.Launched:
		t.passed.Store(true)
	case launch == podspec.LaunchMissing, launch == podspec.LaunchRefused && !t.passed.Load():
		t.once.Do(func() { t.failed(problem.Reason) })
		problem.Kind = pool.Lost
	}
	return problem
}
