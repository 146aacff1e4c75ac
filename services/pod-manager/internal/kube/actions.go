package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Create creates a pod and, at the same time, its Service. The pod is told as soon as
// it exists; one whose Service cannot be had is told to be of no use.
func (c *Cluster) Create(action pool.Create, request podspec.Request) {
	c.tasks.add(action.Name, func(ctx context.Context, tell func(pool.Event)) {
		start := time.Now()
		service := c.createServiceOf(ctx, request)
		pod, err := c.createPod(ctx, c.config.Builder.Pod(request))
		if err == nil {
			c.tellPod(tell, pod)
		}
		serviceErr := <-service
		c.metrics.did(ctx, "create", start, errors.Join(err, serviceErr))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			tell(pool.CreateFailed{Name: action.Name, Problem: refusal(fmt.Errorf("create pod %s: %w", action.Name, err))})
		case serviceErr != nil:
			if o, ok := c.observe(pod); ok {
				o.Problem = refusal(fmt.Errorf("create Service %s: %w", pod.Labels[podspec.LabelID], serviceErr))
				tell(pool.PodObserved{Observation: o})
			}
		}
	})
}

// createServiceOf creates the Service of a pod, if there is to be one, and returns what
// became of it.
func (c *Cluster) createServiceOf(ctx context.Context, request podspec.Request) <-chan error {
	done := make(chan error, 1)
	if c.services == nil {
		done <- nil
		return done
	}
	go func() { done <- c.createService(ctx, c.config.Builder.Service(request)) }() // ends with ctx at the latest
	return done
}

// createPod creates a pod, or finds the one of that name.
func (c *Cluster) createPod(ctx context.Context, pod *corev1.Pod) (created *corev1.Pod, err error) {
	pods := c.config.Client.CoreV1().Pods(c.config.Namespace)
	err = retry(ctx, func(ctx context.Context) error {
		created, err = pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			created, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
		}
		return err
	})
	if err == nil && created.DeletionTimestamp != nil {
		return nil, errTerminating
	}
	return created, err
}

// errTerminating is a pod in the way that is about to go.
var errTerminating = errors.New("the pod of that name that exists is being deleted")

// createService creates a Service. One that is there is as good.
func (c *Cluster) createService(ctx context.Context, service *corev1.Service) error {
	return retry(ctx, func(ctx context.Context) error {
		_, err := c.config.Client.CoreV1().Services(c.config.Namespace).Create(ctx, service, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// refusal is what a pod that cannot be created means for those who wait.
func refusal(err error) pool.Problem {
	if errors.Is(err, errTerminating) || passing(err) {
		return pool.Problem{Kind: pool.Lost, Reason: "the Kubernetes API cannot do it now: " + err.Error()}
	}
	return pool.Problem{Kind: pool.Fatal, Reason: "the Kubernetes API refuses it: " + err.Error()}
}

// Delete deletes a pod and its Service.
func (c *Cluster) Delete(action pool.Delete) {
	c.tasks.add(action.Name, func(ctx context.Context, tell func(pool.Event)) {
		start := time.Now()
		c.going.Store(types.UID(action.UID), struct{}{})
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID(action.UID))}}
		if action.ResourceVersion != "" {
			options.Preconditions.ResourceVersion = &action.ResourceVersion
		}
		err := c.remove(ctx, action.Name, options)
		c.metrics.did(ctx, "delete", start, err)
		switch {
		case apierrors.IsNotFound(err):
			tell(pool.PodGone{Name: action.Name, UID: action.UID})
		case err != nil:
			c.going.Delete(types.UID(action.UID))
			tell(pool.DeleteFailed{Name: action.Name, UID: action.UID, Reason: err.Error()})
			return
		}
		c.removeServiceOf(ctx, podname.PodID(action.Function.Reference, action.Function.Digest, action.Slot), action.Name)
	})
}

// remove deletes a pod.
func (c *Cluster) remove(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return retry(ctx, func(ctx context.Context) error {
		return c.config.Client.CoreV1().Pods(c.config.Namespace).Delete(ctx, name, options)
	})
}

// removeServiceOf deletes the Service of a pod that goes, unless another pod has it.
func (c *Cluster) removeServiceOf(ctx context.Context, id, pod string) {
	if c.services == nil {
		return
	}
	for _, other := range c.podsOf(id) {
		if other.Name != pod && other.DeletionTimestamp == nil {
			return
		}
	}
	if err := c.removeService(ctx, id); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "a Service is left over for now", "service", id, "error", err)
	}
}

// removeService deletes a Service. One that is gone is as good.
func (c *Cluster) removeService(ctx context.Context, id string) error {
	if c.services == nil {
		return nil
	}
	err := retry(ctx, func(ctx context.Context) error {
		return c.config.Client.CoreV1().Services(c.config.Namespace).Delete(ctx, id, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Extend writes down until when a pod may be kept.
func (c *Cluster) Extend(action pool.Extend) {
	c.tasks.add(action.Name, func(ctx context.Context, _ func(pool.Event)) {
		start := time.Now()
		err := c.extend(ctx, action.Name, action.UID, action.ReclaimAfter)
		c.metrics.did(ctx, "extend", start, err)
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			c.log.WarnContext(ctx, "another replica may collect a pod too early: its end could not be put off", "pod", action.Name, "error", err)
		}
	})
}

// extend patches the annotation. The UID in the patch makes it fail on another pod of
// the same name.
func (c *Cluster) extend(ctx context.Context, name, uid string, until time.Time) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, uid, podspec.AnnotationReclaimAfter, strconv.FormatInt(until.Unix(), 10))
	return retry(ctx, func(ctx context.Context) error {
		_, err := c.config.Client.CoreV1().Pods(c.config.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: podspec.FieldManager})
		return err
	})
}
