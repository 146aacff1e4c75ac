// SPDX-License-Identifier: Apache-2.0

package evalserve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/evalserve"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// most is the largest message in these tests.
const most = 1 << 20

// serviceFunc is an evaluator service.
type serviceFunc func(*evaluator.EvaluateFunctionRequest) *evaluator.EvaluateFunctionResponse

func (f serviceFunc) EvaluateFunction(
	_ context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	return f(req), nil
}

// config has a service serve messages of up to most bytes within a large memory budget.
func config(service serviceFunc, most int64) evalserve.Config {
	return evalserve.Config{
		Service: service, MaxMessageBytes: most, Budget: evalserve.NewBudget(1<<40, serve.DefaultWindows, ""),
	}
}

// echo answers with the request's list, and with the names in it.
func echo(req *evaluator.EvaluateFunctionRequest) *evaluator.EvaluateFunctionResponse {
	return &evaluator.EvaluateFunctionResponse{
		ResourceList: req.GetResourceList(), Log: []byte(req.GetImage() + req.GetTag()),
	}
}

// start serves a service over HTTP/1.1 and HTTP/2, and returns its address and a client of it.
func start(t testing.TB, service serviceFunc) (string, *http.Client) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(evalserve.NewHandler(config(service, most),
		connect.WithReadMaxBytes(most), connect.WithSendMaxBytes(most), connect.WithCompression("gzip", nil, nil)))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, server.Client()
}

// list returns so many bytes, no two pieces of which are alike.
func list(size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(i*7 + i>>8)
	}
	return out
}

// TestMessagesArriveWhole has lists of many sizes go both ways, in each protocol and encoding.
func TestMessagesArriveWhole(t *testing.T) {
	url, client := start(t, echo)
	for name, options := range map[string][]connect.ClientOption{
		"gRPC":          {connect.WithGRPC()},
		"gRPC JSON":     {connect.WithGRPC(), connect.WithProtoJSON()},
		"gRPC-Web":      {connect.WithGRPCWeb()},
		"gRPC-Web JSON": {connect.WithGRPCWeb(), connect.WithProtoJSON()},
		"Connect":       nil,
		"Connect JSON":  {connect.WithProtoJSON()},
	} {
		t.Run(name, func(t *testing.T) {
			caller := evaluatorconnect.NewFunctionEvaluatorClient(client, url, options...)
			for _, size := range []int{0, 1, 127, 128, 16 << 10, 512 << 10} {
				for _, image := range []string{"", "example.com/fn:v1"} {
					sent := &evaluator.EvaluateFunctionRequest{ResourceList: list(size), Image: image, Tag: "tag"}
					got, err := caller.EvaluateFunction(t.Context(), sent)
					if err != nil {
						t.Fatalf("%d bytes: %v", size, err)
					}
					if !bytes.Equal(got.GetResourceList(), sent.GetResourceList()) || string(got.GetLog()) != image+"tag" {
						t.Errorf("%d bytes: got %d bytes and %q", size, len(got.GetResourceList()), got.GetLog())
					}
				}
			}
		})
	}
}

// TestTooLargeMessagesAreRejected has a message of each direction be larger than the largest.
func TestTooLargeMessagesAreRejected(t *testing.T) {
	url, client := start(t, func(*evaluator.EvaluateFunctionRequest) *evaluator.EvaluateFunctionResponse {
		return &evaluator.EvaluateFunctionResponse{ResourceList: list(most)} // and its field's number and length
	})
	caller := evaluatorconnect.NewFunctionEvaluatorClient(client, url, connect.WithGRPC())
	for name, size := range map[string]int{"request": most, "response": 1} {
		_, err := caller.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{ResourceList: list(size)})
		if connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("a %s that is too large: %v, want ResourceExhausted", name, err)
		}
	}
}

// call posts a message of gRPC as it is, and returns the status and the list that the service got.
func call(t *testing.T, body []byte) (status string, got []byte) {
	t.Helper()
	url, client := start(t, func(req *evaluator.EvaluateFunctionRequest) *evaluator.EvaluateFunctionResponse {
		got = req.GetResourceList()
		return echo(req)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		url+evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.Trailer.Get("Grpc-Status"), got
}

// prefixed returns a message of gRPC that announces announced bytes.
func prefixed(flags byte, announced int, message []byte) []byte {
	prefix := []byte{flags, byte(announced >> 24), byte(announced >> 16), byte(announced >> 8), byte(announced)}
	return append(prefix, message...)
}

// TestUnusualMessages has messages that are valid, although no encoder of ours writes them, and messages that Connect
// rejects as it does without this package.
func TestUnusualMessages(t *testing.T) {
	field := func(number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	whole := field(1, "kind: ResourceList")
	tests := map[string]struct {
		reason       string
		sent         []byte
		status, list string
	}{
		"last field":    {"fields have any order", prefixedWhole(join(field(2, "i"), field(1, "a"))), "0", "a"},
		"two lists":     {"the last one counts", prefixedWhole(join(field(1, "a"), field(2, "i"), field(1, "b"))), "0", "b"},
		"no list":       {"it is empty", prefixedWhole(field(2, "i")), "0", ""},
		"empty":         {"all fields have their defaults", prefixedWhole(nil), "0", ""},
		"another field": {"newer callers send more", prefixedWhole(join(field(1, "a"), field(99, "z"))), "0", "a"},
		"another type": {
			"unknown to any decoder", prefixedWhole(join(protowire.AppendVarint([]byte{1 << 3}, 5), field(1, "a"))), "0", "a",
		},
		"cut field":        {"no protocol buffer", prefixedWhole(whole[:5]), "3", ""},
		"no tag":           {"no protocol buffer", prefixedWhole([]byte{0x80}), "3", ""},
		"no text":          {"an image is UTF-8", prefixedWhole(join(whole, field(2, "\xff"))), "3", ""},
		"nothing":          {"no message", nil, "12", ""},
		"part of a prefix": {"cut", []byte{0, 0}, "13", ""},
		"cut message":      {"fewer bytes than announced", prefixed(0, len(whole)+1, whole), "13", ""},
		"compressed":       {"no compression", prefixed(1, len(whole), whole), "13", ""},
		"two messages":     {"one is a request", join(prefixedWhole(whole), prefixedWhole(whole)), "12", ""},
		"second message":   {"memory was reserved for one", join(prefixedWhole(nil), prefixedWhole(whole)), "12", ""},
		"large rest": {
			"the list would keep its memory", prefixedWhole(join(field(1, "a"), field(99, strings.Repeat("z", 1<<17)))),
			"0", "a",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if status, got := call(t, tc.sent); status != tc.status || string(got) != tc.list {
				t.Errorf("status %s and list %q, want %s and %q: %s", status, got, tc.status, tc.list, tc.reason)
			}
		})
	}
}

func prefixedWhole(message []byte) []byte { return prefixed(0, len(message), message) }

// TestAnnouncementsTakeNoMemory has uploads that announce a message and send little of it.
func TestAnnouncementsTakeNoMemory(t *testing.T) {
	const size = 5_000_000
	if taken := stalled(prefixed(0, size, list(1000)), size); taken > uploads*size/10 {
		t.Errorf("%d announcements of %d bytes take %d", uploads, size, taken)
	}
}

// TestABrokenUploadIsItsError has a connection break in the middle of a message, for a reason that Connect knows.
func TestABrokenUploadIsItsError(t *testing.T) {
	broken := connect.NewError(connect.CodeUnavailable, errors.New("the memory is needed"))
	_, handler := evalserve.NewHandler(config(echo, most))
	req := httptest.NewRequest(http.MethodPost, evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure,
		io.MultiReader(bytes.NewReader(prefixed(0, 1000, list(500))), iotest.ErrReader(broken)))
	req.ProtoMajor = 2
	req.Header.Set("Content-Type", "application/grpc")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	if got := w.Header().Get(http.TrailerPrefix + "Grpc-Status"); got != "14" {
		t.Errorf("status %q, want 14", got)
	}
}

// TestUploadsTakeTheirSize has uploads stop shortly before their end, all in one process with what decodes them.
func TestUploadsTakeTheirSize(t *testing.T) {
	const size, sent = 5_000_000, 4_900_000
	if taken := float64(stalled(prefixed(0, size, list(sent)), size)) / (uploads * sent); taken > 1.1 {
		t.Errorf("uploads take %.2f times what was sent of them", taken)
	}
}

// uploads is how many uploads stall at a time.
const uploads = 20

// stalled returns how much memory uploads take that have sent some bytes, and then nothing for a while.
func stalled(sent []byte, most int64) (taken int) {
	_, handler := evalserve.NewHandler(config(echo, most))
	before := heap()
	var stopped, ended sync.WaitGroup
	goOn := make(chan struct{})
	for range uploads {
		stopped.Add(1)
		pause := sync.OnceFunc(func() {
			stopped.Done()
			<-goOn
		})
		end := readerFunc(func([]byte) (int, error) {
			pause()
			return 0, io.ErrUnexpectedEOF
		})
		req := httptest.NewRequest(http.MethodPost, evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure,
			io.MultiReader(bytes.NewReader(sent), end))
		req.ProtoMajor = 2
		req.Header.Set("Content-Type", "application/grpc")
		ended.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), req) })
	}
	stopped.Wait()
	taken = heap() - before
	close(goOn)
	ended.Wait()
	return taken
}

// heap returns the bytes in use.
func heap() int {
	runtime.GC()
	runtime.GC() // what pools had before the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestInterceptorsSeeWholeMessages has an interceptor of the service, such as one of traces, look at sizes.
func TestInterceptorsSeeWholeMessages(t *testing.T) {
	var seen []int
	sizes := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			resp, err := next(ctx, req)
			seen = append(seen, proto.Size(req.Any().(proto.Message)), proto.Size(resp.Any().(proto.Message)))
			return resp, err
		}
	})
	path, handler := evalserve.NewHandler(config(echo, most), connect.WithInterceptors(sizes))
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	server := httptest.NewServer(mux)
	defer server.Close()
	sent := &evaluator.EvaluateFunctionRequest{ResourceList: list(1000)}
	caller := evaluatorconnect.NewFunctionEvaluatorClient(server.Client(), server.URL, connect.WithGRPCWeb())
	if _, err := caller.EvaluateFunction(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	if want := proto.Size(sent); fmt.Sprint(seen) != fmt.Sprint([]int{want, want}) {
		t.Errorf("interceptors see messages of %v bytes, want %d", seen, want)
	}
}
