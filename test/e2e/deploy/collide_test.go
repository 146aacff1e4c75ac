// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// collide makes all replicas create the same pod at the same moment, until one finds that another
// was faster, and uses that one's pod.
func (m managing) collide(t *testing.T, at place) {
	t.Helper()
	ctx := suite.Context(t)
	replicas := at.replicas(ctx, t, m.deployment)
	look := right{at.functions, "pods", "get"}
	for ctx.Err() == nil {
		var all errgroup.Group
		for _, replica := range replicas {
			all.Go(func() error { return m.ask(ctx, t, &replica, replicas) })
		}
		switch err := all.Wait(); {
		case connect.CodeOf(err) == connect.CodeUnavailable, status.Code(err) == codes.Unavailable:
			t.Logf("in another round, as a gateway asks again: %v", err) // the API may be slow for some seconds
			<-time.After(time.Second)
			continue
		case err != nil:
			t.Fatal(err)
		}
		pods := at.minorPods(ctx, t)
		if live := slices.DeleteFunc(slices.Clone(pods), ends); len(live) > 1 {
			t.Errorf("there are function pods %s and %s: more than one has the same number", live[0].Name, live[1].Name)
		}
		if len(m.unused(t, at, []right{look})) == 0 {
			return // this pod ends by itself
		}
		for _, replica := range replicas {
			at.awaitCounted(ctx, t, &replica)
		}
		// In the next round all replicas know the image, and are even closer to each other. A
		// replica that still counted a deleted pod would take the next number, and nothing would
		// collide.
		at.remove(ctx, t, pods)
		for _, replica := range replicas {
			at.awaitCounted(ctx, t, &replica)
		}
	}
}

// replicas are two ready pods of a Deployment.
func (p place) replicas(ctx context.Context, t *testing.T, deployment string) (ready []corev1.Pod) {
	t.Helper()
	suite.Until(ctx, t, "two replicas are ready", func() (bool, string) {
		pods, err := s.Client.CoreV1().Pods(p.system).List(ctx, metav1.ListOptions{LabelSelector: "app=" + deployment})
		if err != nil {
			t.Fatal(err)
		}
		ready = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !suite.Ready(&pod) })
		return len(ready) >= 2, fmt.Sprintf("%d are", len(ready))
	})
	return ready
}

// minor is inPod's function by the tag of its minor version: a function with its own pods, which
// end when they are not used.
func minor(t *testing.T) string { return strings.TrimSuffix(inPod(t), ".5") }

// minorPods returns its pods, also those that end.
func (p place) minorPods(ctx context.Context, t *testing.T) []corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(p.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items,
		func(pod corev1.Pod) bool { return !strings.HasPrefix(pod.Name, "set-namespace-v04-") })
}

// ends reports whether a pod is being deleted.
func ends(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// remove deletes function pods, which have nothing to finish.
func (p place) remove(ctx context.Context, t *testing.T, pods []corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		err := s.Client.CoreV1().Pods(p.functions).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		s.AwaitGone(ctx, t, p.functions, pod.Name)
	}
}

// awaitCounted waits until a replica counts as many pods of the minor version as there are: none once they expired.
func (p place) awaitCounted(ctx context.Context, t *testing.T, replica *corev1.Pod) {
	t.Helper()
	label := fmt.Sprintf("image=%q", path.Base(minor(t)))
	suite.Until(ctx, t, replica.Name+" counts all pods with "+label, func() (bool, string) {
		page, err := suite.Metrics(ctx, replica.Status.PodIP)
		if err != nil {
			t.Fatal(err)
		}
		counted := 0
		for line := range strings.Lines(page) {
			series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !strings.HasPrefix(series, "fn_pods{") || !strings.Contains(series, label) {
				continue
			}
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			counted += n
		}
		want := len(p.minorPods(ctx, t))
		return counted == want, fmt.Sprintf("it counts %d of %d", counted, want)
	})
}

// evaluate evaluates a function with a replica that does everything.
func evaluate(ctx context.Context, t *testing.T, replica *corev1.Pod, _ []corev1.Pod) error {
	return suite.SetNamespace(ctx, suite.Connect(t, replica.Status.PodIP+":9445"), minor(t))
}

// lease requests a lease from a pod-manager and finishes it. The request says that no other replica
// was reached: one that does not own the function would name the owner, and create no pod.
func lease(ctx context.Context, t *testing.T, replica *corev1.Pod, all []corev1.Pod) error {
	client := podmanagerv1connect.NewPodManagerServiceClient(servetest.HTTP2Client(t),
		"http://"+replica.Status.PodIP+":9448", connect.WithGRPC())
	stream, err := client.Lease(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.CloseResponse() }()
	open := &podmanagerv1.LeaseRequest_Open{Image: minor(t), Attempt: 1}
	for i := range all {
		open.Tried = append(open.Tried, all[i].Status.PodIP+":9448")
	}
	err = stream.Send(&podmanagerv1.LeaseRequest{Message: &podmanagerv1.LeaseRequest_Open_{Open: open}})
	if err != nil {
		return err
	}
	for {
		response, err := stream.Receive()
		if err != nil || response.GetGranted() != nil {
			return err
		}
	}
}
