//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// right is to do something with a kind of objects.
type right struct{ namespace, resource, verb string }

// managing is how pods are managed in a mode.
type managing struct {
	mode       string
	deployment string // of the program that manages them
	account    string // whose rights it has
	prefix     string // of its variables
	// ask has one replica provide a function's pod.
	ask func(ctx context.Context, t *testing.T, replica *corev1.Pod) error
}

// TestRightsAreMinimal has whoever manages pods do all that they ever do, in both modes,
// and compares what they may with what they asked for: a right that is missing is refused
// to them, and one too many is not used. (Those on Secrets are in e2e/registries.)
func TestRightsAreMinimal(t *testing.T) {
	t.Parallel() // with whatever else has namespaces of its own
	for _, m := range []managing{
		{"microservices", "pod-manager", "pod-manager", "FNR_", lease},
		{"function-runner", "function-runner", "porch-fn-runner", "FNR_POD_MANAGER_", evaluate},
	} {
		t.Run(m.mode, func(t *testing.T) {
			t.Parallel()
			m.usesItsRights(t, aside("rights-"+m.mode))
		})
	}
}

func (m managing) usesItsRights(t *testing.T, at place) {
	dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/"+m.mode, "pod-template")
	objects := onTheBed(t, suite.Build(t, dir))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == m.deployment {
			// Pods come and go within the test.
			suite.SetVariable(t, o, m.prefix+"TTL", "15s")
			suite.SetVariable(t, o, m.prefix+"SCAN_INTERVAL", "1s")
		}
	}
	at.install(t, objects)
	at.evaluates(t, inPod(t))
	m.collide(t, at)
	at.restart(t, m.deployment) // watches are written down when they end

	granted := at.granted(t, objects)
	var missing []right
	for ctx := suite.Context(t); ; <-time.After(500 * time.Millisecond) {
		at.evaluates(t, inPod(t)) // extends the life of its pod; the others end
		if missing = m.unused(t, at, granted); len(missing) == 0 || ctx.Err() != nil {
			break
		}
	}
	if len(missing) > 0 {
		t.Errorf("these rights are granted, and nobody uses them: %+v", missing)
	}
}

// granted are the rights that Roles grant.
func (p place) granted(t *testing.T, objects []*unstructured.Unstructured) []right {
	t.Helper()
	var rights []right
	for _, o := range p.objects(t, suite.Current, objects) {
		if o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, right{role.Namespace, resource, verb})
				}
			}
		}
	}
	if len(rights) == 0 {
		t.Fatal("no Role grants anything")
	}
	return rights
}

// unused are those of the rights that no replica has used. It is an error if one was
// refused anything.
func (m managing) unused(t *testing.T, at place, granted []right) []right {
	t.Helper()
	used := map[right]bool{}
	for _, r := range s.Requests(t, at.system, m.account, time.Time{}) {
		used[right{r.Object.Namespace, r.Object.Resource, r.Verb}] = true
		if r.Response.Code == http.StatusForbidden {
			t.Fatalf("a right is missing: %s %s", r.Verb, r.URI)
		}
	}
	var unused []right
	for _, g := range granted {
		if !used[g] {
			unused = append(unused, g)
		}
	}
	return unused
}

// collide has all replicas provide the same pod at the same moment, until one finds that
// the other was faster, and looks at that one's.
func (m managing) collide(t *testing.T, at place) {
	t.Helper()
	ctx := suite.Context(t)
	replicas := at.replicas(ctx, t, m.deployment)
	look := right{at.functions, "pods", "get"}
	for ctx.Err() == nil {
		var all errgroup.Group
		for _, replica := range replicas {
			all.Go(func() error { return m.ask(ctx, t, &replica) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		pods := at.minorPods(ctx, t)
		if len(pods) != 1 {
			t.Errorf("there are function pods %v: more than one filled the same place", pods)
		}
		if len(m.unused(t, at, []right{look})) == 0 {
			return // this one ends by itself
		}
		// Next time all know the image, and are even closer to each other.
		at.remove(ctx, t, pods)
		<-time.After(heard)
	}
}

// heard is how long a replica may take to hear that a pod is gone. One that still counts
// it takes the next place, and nothing collides.
const heard = 2 * time.Second

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

// minor is inPod's function by the tag of its minor version: a function with pods of its
// own, which end when nobody asks for them.
func minor(t *testing.T) string { return strings.TrimSuffix(inPod(t), ".5") }

// minorPods are the names of that one's pods.
func (p place) minorPods(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(p.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, "set-namespace-v04-") {
			names = append(names, pod.Name)
		}
	}
	return names
}

// remove deletes function pods, which have nothing to finish.
func (p place) remove(ctx context.Context, t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		err := s.Client.CoreV1().Pods(p.functions).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		s.AwaitGone(ctx, t, p.functions, name)
	}
}

// evaluate has a replica that does everything evaluate a function.
func evaluate(ctx context.Context, t *testing.T, replica *corev1.Pod) error {
	return suite.SetNamespace(ctx, suite.Connect(t, replica.Status.PodIP+":9445"), minor(t))
}

// lease asks a pod-manager for a pod and gives it back.
func lease(ctx context.Context, t *testing.T, replica *corev1.Pod) error {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	client := podmanagerv1connect.NewPodManagerServiceClient(&http.Client{Transport: transport}, "http://"+replica.Status.PodIP+":9448", connect.WithGRPC())
	stream, err := client.Lease(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.CloseResponse() }()
	err = stream.Send(&podmanagerv1.LeaseRequest{Message: &podmanagerv1.LeaseRequest_Open_{Open: &podmanagerv1.LeaseRequest_Open{Image: minor(t), Attempt: 1}}})
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
