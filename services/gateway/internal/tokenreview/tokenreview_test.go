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
	"github.com/krm-function-runner/function-runner/services/gateway/internal/tokenreview"
)

// TestOnePeerHasAShareOfTheReviews has a peer show many tokens while the API does not answer.
func TestOnePeerHasAShareOfTheReviews(t *testing.T) {
	asked, hang := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-hang
	}))
	defer server.Close()
	account := t.TempDir()
	for name, content := range map[string][]byte{"token": []byte("own"), "ca.crt": pemOf(server)} {
		if err := os.WriteFile(filepath.Join(account, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := tokenreview.New(tokenreview.Config{API: server.URL, Directory: account, Audiences: []string{"a"}})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	defer running.Wait()
	defer stop()
	defer close(hang)
	for i := range 4 {
		running.Go(func() { _, _ = r.Identify(ctx, "192.0.2.1", fmt.Sprint("junk", i)) })
		<-asked
	}
	if _, err := r.Identify(ctx, "192.0.2.1", "one more"); fault.Of(err) != fault.Exhausted {
		t.Errorf("a fifth token of one peer: %v, want that it is too many", err)
	}
	running.Go(func() { _, _ = r.Identify(ctx, "192.0.2.2", "another's") })
	<-asked // it is asked about
}
