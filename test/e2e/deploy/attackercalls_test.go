// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	tlscredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/krm-function-runner/function-runner/libs/gen/evaluator" // the methods
	_ "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	_ "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	_ "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// tries calls all methods at an address, asks for metrics, and returns the answers: that of most methods, and others
// with their methods. A connection that is not accepted is one answer for all methods.
func (a attacker) tries(t *testing.T, address string, with credential) string {
	t.Helper()
	if with.tls != nil {
		if refusal := a.handshake(t, address, with.tls); refusal != "" {
			return refusal
		}
	}
	transport := insecure.NewCredentials()
	if with.tls != nil {
		transport = tlscredentials.NewTLS(with.tls)
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport), grpc.WithContextDialer(a.dial))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	methodsByAnswer := make(map[string][]string)
	for _, method := range methods() {
		answer := answerOf(call(t, conn, method, with.token))
		methodsByAnswer[answer] = append(methodsByAnswer[answer], method[strings.LastIndexByte(method, '/')+1:])
	}
	answer := a.get(t, address, with)
	methodsByAnswer[answer] = append(methodsByAnswer[answer], "GET "+metricsPath)
	return summary(methodsByAnswer)
}

// metricsPath is what all ports are asked for beside their methods: some serve nothing else.
const metricsPath = "/metrics"

// get asks for the metrics with HTTP/1.1, and returns the status.
func (a attacker) get(t *testing.T, address string, with credential) string {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: with.tls,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return a.dial(ctx, address) },
	}
	scheme := "http://"
	if with.tls != nil {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(suite.Context(t), http.MethodGet, scheme+address+metricsPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	if with.token != "" {
		request.Header.Set("Authorization", "Bearer "+with.token)
	}
	answer, err := transport.RoundTrip(request)
	switch {
	case err == nil:
		_ = answer.Body.Close()
		return answer.Status
	case strings.Contains(err.Error(), "connection refused"):
		return "no server"
	default:
		return "no HTTP/1.1"
	}
}

// summary has the answer of most methods first, and then the others with their methods.
func summary(methodsByAnswer map[string][]string) string {
	var answers []string
	for answer := range methodsByAnswer {
		answers = append(answers, answer)
	}
	slices.SortFunc(answers, func(x, y string) int {
		if n := len(methodsByAnswer[y]) - len(methodsByAnswer[x]); n != 0 {
			return n
		}
		return strings.Compare(x, y)
	})
	for i, answer := range answers[1:] {
		slices.Sort(methodsByAnswer[answer])
		answers[i+1] = answer + ": " + strings.Join(methodsByAnswer[answer], ", ")
	}
	return strings.Join(answers, "; ")
}

// answerOf names the outcome of a call. A connection that cannot be used is told apart from a server's Unavailable.
func answerOf(err error) string {
	st := status.Convert(err)
	switch {
	case st.Code() != codes.Unavailable:
		return st.Code().String()
	case strings.Contains(st.Message(), "connection refused"):
		return "no server"
	}
	if _, alert, alerted := strings.Cut(st.Message(), alertPrefix); alerted {
		return "TLS alert: " + strings.TrimSuffix(alert, `"`)
	}
	return "Unavailable: " + st.Message()
}

// alertPrefix is what errors have before the text of an alert.
const alertPrefix = "remote error: tls: "

// silence bounds the wait for what a server sends first.
const silence = 30 * time.Second

// handshake connects with TLS and begins HTTP/2, and returns why the server does not accept that, empty if it does. It
// accepts a certificate, or rejects it, when the client's part of the handshake has ended already.
func (a attacker) handshake(t *testing.T, address string, secure *tls.Config) string {
	t.Helper()
	ctx := suite.Context(t)
	raw, err := a.dial(ctx, address)
	if err != nil {
		return "no server"
	}
	defer func() { _ = raw.Close() }()
	secure = secure.Clone()
	secure.NextProtos = []string{"h2"}
	conn := tls.Client(raw, secure)
	if err = conn.HandshakeContext(ctx); err == nil {
		_ = conn.SetDeadline(time.Now().Add(silence))
		_, _ = io.WriteString(conn, http2.ClientPreface) // what fails is what is received
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	switch _, alert, alerted := strings.Cut(fmt.Sprint(err), alertPrefix); {
	case err == nil:
		return ""
	case alerted:
		return "TLS alert: " + alert
	case errors.As(err, new(tls.RecordHeaderError)):
		return "no TLS"
	default:
		return fmt.Sprintf("no TLS: %v", err)
	}
}

// methods returns the full names of all methods of our services, of reflection, and of health checks, which all
// clients may call.
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
	return append(names,
		grpc_reflection_v1.ServerReflection_ServerReflectionInfo_FullMethodName, healthv1.Health_Check_FullMethodName)
}

// call calls a method with an empty message, and returns the first answer.
func call(t *testing.T, conn *grpc.ClientConn, method, token string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(suite.Context(t))
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	// What fails while the message is sent is what is received.
	_ = stream.SendMsg(new(emptypb.Empty))
	_ = stream.CloseSend()
	return stream.RecvMsg(new(emptypb.Empty))
}
