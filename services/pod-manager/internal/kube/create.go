// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Create creates a pod and its Service.
func (c *Cluster) Create(action pool.Create, request podspec.Request) {
	c.tasks.add(podname.ID(action.Name), func(ctx context.Context, tell func(pool.Event)) {
		start := time.Now()
		err := c.create(ctx, request, tell)
		c.metrics.did(ctx, "create", start, err)
	})
}

// creation is a pod and its Service as they were created or found.
type creation struct {
	pod                    *corev1.Pod
	podMade, serviceMade   bool
	podError, serviceError error
}

// create creates a pod and, at the same time, its Service. It emits an event for the pod as
// soon as the pod exists.
func (c *Cluster) create(ctx context.Context, request podspec.Request, tell func(pool.Event)) error {
	if request.Template.Version() == "" {
		template, err := c.config.Templates.Await(ctx)
		if err != nil {
			tell(pool.CreateFailed{Name: request.Name, Problem: untemplated(err)})
			return err
		}
		request.Template = template
		request.SettingsVersion = c.config.Builder.SettingsVersion(request) // of which the template is a part
	}
	var made creation
	var both sync.WaitGroup
	request.ReclaimAfter = c.config.Clock.Theirs(request.ReclaimAfter)
	both.Go(func() {
		made.pod, made.podMade, made.podError = c.createPod(ctx, c.config.Builder.Pod(request))
		if made.pod != nil {
			c.tellPod(tell, made.pod)
		}
	})
	if !c.config.PodIP {
		both.Go(func() {
			made.serviceMade, made.serviceError = c.createService(ctx, c.config.Builder.Service(request))
		})
	}
	both.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.settle(ctx, request, made, tell)
	return errors.Join(made.podError, made.serviceError)
}

// settle emits the failure of a creation, unless both the pod and its Service exist. One
// without the other is of no use.
func (c *Cluster) settle(ctx context.Context, request podspec.Request, made creation, tell func(pool.Event)) {
	switch {
	case made.podError != nil:
		tell(pool.CreateFailed{Name: request.Name, Problem: refusal(made.podError)})
		if made.serviceMade && !passing(made.podError) {
			// It is certain that there is no pod, and no other one in its slot.
			c.removeService(ctx, c.config.Builder.Service(request).Name, metav1.DeleteOptions{})
		}
	case made.serviceError != nil:
		// The pool deletes it: it knows it by now, and may have done so already.
		problem := refusal(made.serviceError)
		if !made.podMade && passing(made.serviceError) {
			problem.Kind = pool.Held // another replica may be about to do it
		}
		c.tellProblem(tell, made.pod, problem)
	}
}

// createPod creates a pod, or finds the one of that name. One that is being deleted is
// returned together with an error.
func (c *Cluster) createPod(ctx context.Context, pod *corev1.Pod) (there *corev1.Pod, made bool, err error) {
	pods := c.config.Client.CoreV1().Pods(c.config.Namespace)
	err = withRetries(ctx, func(ctx context.Context) error {
		created, taken := pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		if taken == nil {
			there, made = created, true
			return nil
		}
		if !apierrors.IsAlreadyExists(taken) {
			return contended(taken)
		}
		found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return transient{err} // it went meanwhile
		}
		if err != nil {
			return err
		}
		if _, ours := podspec.Identify(found); !ours {
			return fmt.Errorf("a pod of that name exists that this program did not create: %w", taken)
		}
		there = found
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	if there.DeletionTimestamp != nil {
		return there, false, transient{fmt.Errorf("create pod %s: one of that name is being deleted", pod.Name)}
	}
	return there, made, nil
}

// createService creates a Service. An existing one of that name counts as success.
func (c *Cluster) createService(ctx context.Context, service *corev1.Service) (made bool, err error) {
	err = withRetries(ctx, func(ctx context.Context) error {
		_, err := c.config.Client.CoreV1().Services(c.config.Namespace).Create(ctx, service, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		made = err == nil
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return contended(err)
	})
	if err != nil {
		return false, fmt.Errorf("create Service %s: %w", service.Name, err)
	}
	return made, nil
}

// contended marks the conflicts that creations have with each other: they count
// towards the same quota at the same moment.
func contended(err error) error {
	if apierrors.IsConflict(err) {
		return transient{err}
	}
	return err
}

// refusal returns the problem that waiting leases get when the API server does not create a pod.
func refusal(err error) pool.Problem {
	if passing(err) {
		return pool.Problem{Kind: pool.Lost, Reason: "the Kubernetes API cannot do it now: " + err.Error()}
	}
	return pool.Problem{Kind: pool.Fatal, Reason: "the Kubernetes API refuses it: " + err.Error()}
}

// untemplated returns the problem that waiting leases get when there is no template.
func untemplated(err error) pool.Problem {
	if fault.Of(err) == fault.Precondition {
		return pool.Problem{Kind: pool.Fatal, Reason: err.Error()}
	}
	return pool.Problem{Kind: pool.Lost, Reason: err.Error()}
}
