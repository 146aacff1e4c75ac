// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/krm-function-runner/function-runner/libs/evalserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// TestMemoryIsBounded has a request arrive while another client's request uses the memory.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{maxMessage: 100, budget: evalserve.NewBudget(100, windows, "")}
		path, handler := s.newHandler()
		body, sender := io.Pipe()
		for _, from := range []string{"10.0.0.1:1", "10.0.0.2:1"} {
			r := httptest.NewRequest(http.MethodPost, path+"EvaluateFunction", body)
			r.RemoteAddr = from
			r.ContentLength = 60
			r.Header.Set("Content-Type", "application/json")
			go handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		synctest.Wait()
		if s.budget.Reserved() != 60 || s.budget.Queued() != 1 {
			t.Errorf("%d bytes are reserved and %d requests wait, want 60 and 1", s.budget.Reserved(), s.budget.Queued())
		}
		_ = sender.Close()
	})
}

// TestWindowsAreThoseOfNetHTTP checks that net/http does not replace a window by its default: the budget calculates
// with them.
func TestWindowsAreThoseOfNetHTTP(t *testing.T) {
	const least = 64 << 10
	if windows.Connection < least || windows.Connection > serve.MaxWindow ||
		windows.Request < 1 || windows.Request > serve.MaxWindow {
		t.Errorf("the windows %+v are outside of the permitted sizes, up to %d", windows, serve.MaxWindow)
	}
}
