//go:build e2e

package deploy_test

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestPodManagerLendsPods has the deployed pod-manager start a pod with the rights that
// it has there, in a namespace that admits restricted pods only.
func TestPodManagerLendsPods(t *testing.T) {
	at := aside("lease")
	at.install(t, onTheBed(t, built(t, filepath.Join(root, "deploy/overlays/service-mesh"))))
	image := inPod(t)

	ctx := suite.Context(t)
	pods, err := s.Client.CoreV1().Pods(at.system).List(ctx, metav1.ListOptions{LabelSelector: "app=pod-manager"})
	// The autoscaler may have started another one just now.
	ready := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return suite.Ready(&pod) })
	if err != nil || ready < 0 {
		t.Fatalf("no pod-manager is ready: %v", err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	client := podmanagerv1connect.NewPodManagerServiceClient(&http.Client{Transport: transport}, "http://"+pods.Items[ready].Status.PodIP+":9448", connect.WithGRPC())
	// The Services' rules may be a moment later than their pods.
	err = lease(ctx, t, client, image)
	for connect.CodeOf(err) == connect.CodeUnavailable && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		err = lease(ctx, t, client, image)
	}
	if err != nil {
		t.Error(err)
	}
}

// lease asks for a pod and gives it back.
func lease(ctx context.Context, t *testing.T, client podmanagerv1connect.PodManagerServiceClient, image string) error {
	t.Helper()
	stream, err := client.Lease(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.CloseResponse() }()
	err = stream.Send(&podmanagerv1.LeaseRequest{Message: &podmanagerv1.LeaseRequest_Open_{Open: &podmanagerv1.LeaseRequest_Open{Image: image, Attempt: 1}}})
	if err != nil {
		return err
	}
	for {
		response, err := stream.Receive()
		if err != nil || response.GetGranted() != nil {
			return err
		}
		t.Log(response)
	}
}
