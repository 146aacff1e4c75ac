//go:build e2e

package deploy_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// right is to do something with a kind of objects.
type right struct{ namespace, resource, verb string }

// TestRightsAreMinimal has pod-managers do all that they ever do, and compares what
// they may with what they asked for: a right that is missing is refused to them, and
// one too many is not used.
func TestRightsAreMinimal(t *testing.T) {
	t.Parallel() // with whatever else has namespaces of its own
	at := aside("rights")
	objects := onTheBed(t, suite.Build(t, filepath.Join(root, "deploy/overlays/service-mesh")))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == "pod-manager" {
			// Pods come and go within the test.
			suite.SetVariable(t, o, "FNR_TTL", "15s")
			suite.SetVariable(t, o, "FNR_SCAN_INTERVAL", "1s")
		}
	}
	at.install(t, objects)
	at.evaluates(t, inPod(t))
	at.collide(t)
	at.restart(t, "pod-manager") // watches are written down when they end

	granted := at.granted(t, objects)
	var missing []right
	for ctx := suite.Context(t); ; <-time.After(500 * time.Millisecond) {
		at.evaluates(t, inPod(t)) // extends the life of its pod; the others end
		if missing = at.unused(t, granted); len(missing) == 0 || ctx.Err() != nil {
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

// unused are those of the rights that no pod-manager has used. It is an error if one
// was refused anything.
func (p place) unused(t *testing.T, granted []right) []right {
	t.Helper()
	used := map[right]bool{}
	for _, r := range s.Requests(t, p.system, "pod-manager", time.Time{}) {
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

// collide has two pod-managers make the same pod until one finds that the other was
// faster, and looks at that one's. Both lend it.
func (p place) collide(t *testing.T) {
	t.Helper()
	ctx := suite.Context(t)
	selector := metav1.ListOptions{LabelSelector: "app=pod-manager"}
	var managers []podmanagerv1connect.PodManagerServiceClient
	for len(managers) < 2 {
		managers = nil
		pods, err := s.Client.CoreV1().Pods(p.system).List(ctx, selector)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			if suite.Ready(&pod) {
				managers = append(managers, podManager(t, &pod))
			}
		}
		<-time.After(100 * time.Millisecond)
	}
	look := right{p.functions, "pods", "get"}
	for len(p.unused(t, []right{look})) > 0 && ctx.Err() == nil {
		pod := lendTheSame(ctx, t, managers)
		// Next time both know the image, and are even closer to each other.
		if err := s.Client.CoreV1().Pods(p.functions).Delete(ctx, pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.AwaitGone(ctx, t, p.functions, pod)
	}
}

// lendTheSame asks all pod-managers for a pod at the same moment, and returns its name.
func lendTheSame(ctx context.Context, t *testing.T, managers []podmanagerv1connect.PodManagerServiceClient) string {
	t.Helper()
	var all errgroup.Group
	granted := make([]*podmanagerv1.LeaseResponse_Granted, len(managers))
	for i, manager := range managers {
		all.Go(func() (err error) {
			granted[i], err = lease(ctx, manager, s.Registry(t, "open").Host+"/krm-functions-catalog/starlark:v0.5.5")
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, g := range granted {
		if g.GetPodUid() != granted[0].GetPodUid() {
			t.Errorf("pod-managers lend %s and %s: both filled the same place", granted[0].GetPod(), g.GetPod())
		}
	}
	return granted[0].GetPod()
}

// podManager calls one replica.
func podManager(t *testing.T, pod *corev1.Pod) podmanagerv1connect.PodManagerServiceClient {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return podmanagerv1connect.NewPodManagerServiceClient(&http.Client{Transport: transport}, "http://"+pod.Status.PodIP+":9448", connect.WithGRPC())
}

// lease asks for a pod and gives it back.
func lease(ctx context.Context, client podmanagerv1connect.PodManagerServiceClient, image string) (*podmanagerv1.LeaseResponse_Granted, error) {
	stream, err := client.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.CloseResponse() }()
	err = stream.Send(&podmanagerv1.LeaseRequest{Message: &podmanagerv1.LeaseRequest_Open_{Open: &podmanagerv1.LeaseRequest_Open{Image: image, Attempt: 1}}})
	if err != nil {
		return nil, err
	}
	for {
		response, err := stream.Receive()
		if err != nil || response.GetGranted() != nil {
			return response.GetGranted(), err
		}
	}
}
