package kube

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Trial is for image volumes of which only the Kubernetes API is known to have them: the
// first pods show whether nodes do. A nil Trial judges nothing.
type Trial struct {
	passed atomic.Bool
	once   sync.Once
	failed func(words string)
}

// NewTrial returns a trial that calls failed once, with the kubelet's words, if nodes
// cannot mount images. Pods that are created after that are to be of another kind.
func NewTrial(failed func(words string)) *Trial { return &Trial{failed: failed} }

// judge returns the problem of a pod as those are to see it who wait for one. What the
// trial is to blame for is no reason to give up: another pod may well succeed.
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
