// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	tlscredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	_ "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1" // its methods
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// ownPort is a port that only the system's own programs may call, and a method that the gateway may call there.
type ownPort struct{ app, address, method string }

// attackersGetNothing calls each port that only own programs may call, with all methods of all services, and the
// credentials that an attacker can have. It calls from the node, from where no network policy keeps it. The
// gateway's own certificate is answered, so what attackers get is not for lack of a server.
func (p place) attackersGetNothing(t *testing.T) {
	t.Helper()
	p.awaitStrictPods(t)
	attackers, gateway := p.attackers(t), p.certificate(t, "gateway-tls")
	for _, port := range p.ownPorts(t) {
		for name, shown := range attackers {
			got := make(map[codes.Code]int)
			for _, method := range methods() {
				code := call(t, port.address, method, shown)
				got[code]++
				if !rejected(code) {
					t.Errorf("%s, %s: %s answers with %v", port.app, name, method, code)
				}
			}
			t.Logf("%-14s  %-40s  %v", port.app, name, got)
		}
		if code := call(t, port.address, port.method, gateway); rejected(code) {
			t.Errorf("%s rejects the gateway with %v", port.app, code)
		}
	}
}

// rejected reports whether a call was rejected before its method: its caller has no identity, may not call, or
// gets no connection.
func rejected(code codes.Code) bool {
	return code == codes.Unauthenticated || code == codes.PermissionDenied || code == codes.Unavailable
}

// ownPorts returns the ports of each pod that serves.
func (p place) ownPorts(t *testing.T) []ownPort {
	t.Helper()
	var ports []ownPort
	for _, of := range []struct {
		namespace, selector string
		port                int
		method              string
	}{
		{p.system, "app=pod-manager", 9448, podmanagerv1.PodManagerService_ListPools_FullMethodName},
		{p.system, "app=image-resolver", 9449, imageresolverv1.ImageResolverService_ResolveImage_FullMethodName},
		{p.functions, "fn.kpt.dev/image", 9446, evaluator.FunctionEvaluator_EvaluateFunction_FullMethodName},
	} {
		before := len(ports)
		for _, pod := range p.serving(t, of.namespace, of.selector) {
			address := pod.Status.PodIP + ":" + strconv.Itoa(of.port)
			ports = append(ports, ownPort{pod.Name, address, of.method})
		}
		if len(ports) == before {
			t.Errorf("no pod with %s serves", of.selector)
		}
	}
	return ports
}

// awaitStrictPods waits until the function pods of a permissive system, and those without TLS, have been replaced:
// those in use are, within the minute that pod-managers leave to pods of versions that they do not know.
func (p place) awaitStrictPods(t *testing.T) {
	t.Helper()
	ctx := suite.Context(t)
	for {
		pods := p.serving(t, p.functions, "fn.kpt.dev/image")
		if len(pods) > 0 && !slices.ContainsFunc(pods, notStrict) {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			t.Fatal("there are function pods still that accept callers without certificate")
		}
	}
}

// notStrict reports whether a function pod accepts callers without certificate.
func notStrict(pod corev1.Pod) bool {
	env := pod.Spec.Containers[0].Env
	return pod.Annotations["fn.kpt.dev/identity"] == "" ||
		slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == "FNR_TLS_PERMISSIVE" })
}

// serving returns the pods that are ready, and not about to end.
func (p place) serving(t *testing.T, namespace, selector string) (serving []corev1.Pod) {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: selector}
	pods, err := s.Client.CoreV1().Pods(namespace).List(suite.Context(t), options)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if suite.Ready(&pods.Items[i]) && pods.Items[i].DeletionTimestamp == nil {
			serving = append(serving, pods.Items[i])
		}
	}
	return serving
}

// attackers returns the credentials of attackers: of ones that have a network only, of a function that has its
// pod's certificate, and of another own program that was taken over. Nil is plaintext.
func (p place) attackers(t *testing.T) map[string]*tls.Config {
	t.Helper()
	attackers := map[string]*tls.Config{
		"without TLS": nil, "with TLS, without a certificate": {InsecureSkipVerify: true},
		"with the resolver's certificate":       p.certificate(t, "image-resolver-tls"),
		"with a gateway's of another authority": forged(t, "spiffe://function-runner/gateway"),
	}
	for _, pod := range p.serving(t, p.functions, "fn.kpt.dev/image") {
		attackers["with the certificate of "+pod.Name] = stolen(t, pod)
	}
	return attackers
}

// methods returns the full names of all methods of our services, and of reflection. Health checks are left out:
// all clients may call them.
func methods() (names []string) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if pkg := string(file.Package()); pkg != "evaluator" && !strings.HasPrefix(pkg, "functionrunner.") {
			return true
		}
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for n := range service.Methods().Len() {
				names = append(names, fmt.Sprintf("/%s/%s", service.FullName(), service.Methods().Get(n).Name()))
			}
		}
		return true
	})
	return append(names, grpc_reflection_v1.ServerReflection_ServerReflectionInfo_FullMethodName)
}

// call calls a method with an empty message, and returns the code of the first answer.
func call(t *testing.T, address, method string, secure *tls.Config) codes.Code {
	t.Helper()
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = tlscredentials.NewTLS(secure)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // it has been answered
	ctx, cancel := context.WithCancel(suite.Context(t))
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return status.Code(err)
	}
	// What fails while the message is sent is what is received.
	_ = stream.SendMsg(new(emptypb.Empty))
	_ = stream.CloseSend()
	return status.Code(stream.RecvMsg(new(emptypb.Empty)))
}
