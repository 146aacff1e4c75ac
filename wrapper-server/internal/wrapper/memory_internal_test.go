// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/membudget"
)

// TestMemoryIsBounded has a request come while another client's has the memory.
func TestMemoryIsBounded(t *testing.T) {
	s := &server{maxMessage: 100, budget: membudget.New(100, 0, "")}
	path, handler := s.handler()
	request := func(from string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, path+"EvaluateFunction", strings.NewReader(strings.Repeat("x", 60)))
		r.RemoteAddr = from
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	second := httptest.NewRecorder()
	first := s.budget.Bounded(s.maxMessage, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		handler.ServeHTTP(second, request("10.0.0.2:1"))
	}))
	first.ServeHTTP(httptest.NewRecorder(), request("10.0.0.1:1"))
	if second.Code != http.StatusTooManyRequests {
		t.Errorf("the second request is answered with %d: %s", second.Code, second.Body)
	}
}
