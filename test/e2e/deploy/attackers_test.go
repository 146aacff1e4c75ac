// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
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
// credentials that an attacker can have, from pods in each namespace with each label in turns: the test bed's network
// enforces no policy. The gateway's own certificate is answered, so what attackers get is not for lack of a server.
func (p place) attackersGetNothing(t *testing.T) {
	t.Helper()
	p.awaitStrictPods(t)
	credentials, gateway, ports := p.attackerCredentials(t), p.certificate(t, "gateway-tls"), p.ownPorts(t)
	for _, from := range p.attackerPods(t) {
		for _, labels := range disguises {
			name := from.disguise(t, labels)
			for with, shown := range credentials {
				got := make(map[codes.Code]int)
				for _, port := range ports {
					from.attack(t, port, shown, got)
				}
				t.Logf("%-50s  %-40s  %v", name, with, got)
			}
		}
		for _, port := range ports {
			conn := clientOf(t, port.address, gateway, from.dial)
			defer func() { _ = conn.Close() }()
			if code := call(t, conn, port.method); rejected(code) {
				t.Errorf("%s rejects the gateway with %v", port.app, code)
			}
		}
	}
}

// attack calls all methods at a port, and counts what they answer.
func (a attacker) attack(t *testing.T, port ownPort, shown *tls.Config, got map[codes.Code]int) {
	t.Helper()
	conn := clientOf(t, port.address, shown, a.dial)
	defer func() { _ = conn.Close() }()
	for _, method := range methods() {
		code := call(t, conn, method)
		got[code]++
		if !rejected(code) {
			t.Errorf("%s answers an attacker in %s, with %s: %v", port.app, a.namespace, method, code)
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

// attackerCredentials returns what attackers can show: ones that have a network only, a function that has its pod's
// certificate, and another own program that was taken over. Nil is plaintext.
func (p place) attackerCredentials(t *testing.T) map[string]*tls.Config {
	t.Helper()
	credentials := map[string]*tls.Config{
		"without TLS": nil, "with TLS, without a certificate": {InsecureSkipVerify: true},
		"with the resolver's certificate":       p.certificate(t, "image-resolver-tls"),
		"with a gateway's of another authority": forged(t, "spiffe://function-runner/gateway"),
	}
	for _, pod := range p.serving(t, p.functions, "fn.kpt.dev/image") {
		credentials["with the certificate of "+pod.Name] = stolen(t, pod)
	}
	return credentials
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

// clientOf returns a connection that is opened by the first call.
func clientOf(
	t *testing.T, address string, secure *tls.Config, dial func(context.Context, string) (net.Conn, error),
) *grpc.ClientConn {
	t.Helper()
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = tlscredentials.NewTLS(secure)
	}
	conn, err := grpc.NewClient(
		"passthrough:///"+address, grpc.WithTransportCredentials(transport), grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// call calls a method with an empty message, and returns the code of the first answer.
func call(t *testing.T, conn *grpc.ClientConn, method string) codes.Code {
	t.Helper()
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
