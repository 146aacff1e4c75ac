// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
)

// Answer evaluates fn with a timeout, and returns the code and the message of the server's answer. It does not use a
// gRPC client, because a gRPC client would return its own error when the deadline passes.
func Answer(t *testing.T, fn Function, within time.Duration) (code, message string) {
	t.Helper()
	status, body := postJSON(t, fn, http.Header{"Connect-Timeout-Ms": {strconv.FormatInt(within.Milliseconds(), 10)}})
	var answer struct{ Code, Message string }
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("status %s, and no JSON: %v", status, err)
	}
	return answer.Code, answer.Message
}

// CheckWaited tests an evaluation whose deadline passes while the evaluation waits, for example for a pod. The error
// message must begin with the argument beginning. It must also contain the argument waits, which describes the cause of
// the wait. On a busy machine, a short deadline may pass before the wait begins. CheckWaited then retries with a longer
// deadline.
func CheckWaited(t *testing.T, fn Function, beginning, waits string) {
	t.Helper()
	for timeout := 50 * time.Millisecond; ; timeout *= 4 {
		code, message := Answer(t, fn, timeout)
		waited := strings.HasPrefix(message, beginning) && strings.Contains(message, waits)
		if code != connect.CodeDeadlineExceeded.String() || (!waited && timeout > time.Minute) {
			t.Fatalf("the server answers %s: %q, want %s in Porch's words", code, message, connect.CodeDeadlineExceeded)
		}
		if waited {
			return
		}
	}
}

// postJSON evaluates List with a plain HTTP request in JSON, as users of curl do.
func postJSON(t *testing.T, fn Function, header http.Header) (status string, answer []byte) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"image": fn.Image, "resourceList": []byte(List)})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+fn.Address+evaluatorconnect.FunctionEvaluatorEvaluateFunctionProcedure, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status, answer
}

// checkText fails the test unless got equals want. In want, "…" matches any text.
func checkText(t *testing.T, got, want string) {
	t.Helper()
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", "(?s:.+)")
	if ok, err := regexp.MatchString("^"+pattern+"$", got); err != nil || !ok {
		t.Errorf("message\n%s\nwant\n%s", got, want)
	}
}

// checkHealthy fails the test unless the server answers a health check with SERVING.
func checkHealthy(t *testing.T, f Function) {
	t.Helper()
	resp, err := grpc_health_v1.NewHealthClient(dialServer(t, f.Address)).Check(t.Context(),
		&grpc_health_v1.HealthCheckRequest{})
	if err != nil || resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("afterwards the server's health is %v, %v", resp.GetStatus(), err)
	}
}
