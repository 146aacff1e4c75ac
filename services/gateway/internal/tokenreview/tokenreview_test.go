// SPDX-License-Identifier: Apache-2.0

package tokenreview_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/tokenreview"
)

// reviewer returns a Reviewer whose API answers each question once answer is closed: that the token is valid. asked
// gets each question.
func reviewer(t *testing.T) (r *tokenreview.Reviewer, asked <-chan struct{}, answer chan struct{}) {
	t.Helper()
	questions, answer := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		questions <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"status": {"authenticated": true, "audiences": ["a"], "user": {"username": "u"}}}`))
	}))
	t.Cleanup(server.Close)
	account := t.TempDir()
	for name, content := range map[string][]byte{"token": []byte("own"), "ca.crt": pemOf(server)} {
		if err := os.WriteFile(filepath.Join(account, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := tokenreview.New(tokenreview.Config{
		API: server.URL, Directory: account, Audiences: []string{"a"}, Telemetry: telemetry.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	return r, questions, answer
}

// TestOnePeerHasAShareOfTheReviews has a peer show many tokens while the API does not answer.
func TestOnePeerHasAShareOfTheReviews(t *testing.T) {
	r, asked, answer := reviewer(t)
	var running sync.WaitGroup
	defer running.Wait()
	defer close(answer)
	for i := range 4 {
		running.Go(func() { _, _ = r.Identify(t.Context(), "192.0.2.1", fmt.Sprint("junk", i)) })
		<-asked
	}
	if _, err := r.Identify(t.Context(), "192.0.2.1", "one more"); fault.Of(err) != fault.Exhausted {
		t.Errorf("a fifth token of one peer: %v, want that it is too many", err)
	}
	running.Go(func() { _, _ = r.Identify(t.Context(), "192.0.2.2", "another's") })
	<-asked // it is asked about
}

// TestRequestsShareAReview has more requests of one peer with one token than it may have reviews.
func TestRequestsShareAReview(t *testing.T) {
	r, asked, answer := reviewer(t)
	var running, begun sync.WaitGroup
	for range 20 {
		begun.Add(1)
		running.Go(func() {
			begun.Done()
			if identity, err := r.Identify(t.Context(), "192.0.2.1", "valid"); err != nil || identity.ID != "u" {
				t.Errorf("identity %+v, error %v, want the token's user", identity, err)
			}
		})
	}
	<-asked
	begun.Wait()
	close(answer)
	running.Wait()
	if len(asked) > 0 {
		t.Errorf("%d reviews, want 1", len(asked)+1)
	}
}
