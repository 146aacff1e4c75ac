// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/forward"
)

// TestATokenIsRequestedOnce has many requests at a time.
func TestATokenIsRequestedOnce(t *testing.T) {
	args := kubectl(t, "echo ey.to.ken\n")
	account := forward.NewAccount(forward.Cluster{Context: "c"}, "team/ci")
	var asked sync.WaitGroup
	for range 10 {
		asked.Go(func() {
			if token, err := account.Token(t.Context()); err != nil || token != "ey.to.ken" {
				t.Errorf("token %q, error %v", token, err)
			}
		})
	}
	asked.Wait()
	if got := lines(t, args); len(got) != 1 || !strings.Contains(got[0], "--namespace=team") {
		t.Errorf("kubectl was called with %q, want one call for the account's namespace", got)
	}
}

// TestWhyThereIsNoToken has a kubectl that prints something else, or nothing, or does not end.
func TestWhyThereIsNoToken(t *testing.T) {
	const hangs = "exec sleep 600\n"
	for script, want := range map[string]string{
		"echo a token\n": "prints no token",
		"\n":             "prints no token",
		"echo 'error: unknown flag' >&2; exit 1\n": "kubectl create ended: error: unknown flag",
		"head -c 2000000 /dev/zero | tr '\\0' x\n": "request a token of service account ci",
		hangs: "deadline exceeded",
	} {
		kubectl(t, script)
		timeout := 5 * time.Minute
		if script == hangs {
			timeout = time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		_, err := forward.NewAccount(forward.Cluster{}, "ci").Token(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 5000 {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	_, err := forward.NewAccount(forward.Cluster{}, "ci").Token(t.Context())
	if err == nil || !strings.Contains(err.Error(), "install kubectl") {
		t.Errorf("without kubectl: %v", err)
	}
}

// TestWaitsForATokenEnd has one request wait for another's kubectl.
func TestWaitsForATokenEnd(t *testing.T) {
	args := kubectl(t, "exec sleep 600\n")
	account := forward.NewAccount(forward.Cluster{}, "ci")
	first, stop := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	defer asked.Wait()
	defer stop()
	asked.Go(func() { _, _ = account.Token(first) })
	for !called(args) {
		if t.Context().Err() != nil {
			t.Fatal("kubectl is not called")
		}
	}
	second, leave := context.WithCancel(t.Context())
	leave()
	if _, err := account.Token(second); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// called reports whether kubectl has written its arguments.
func called(args string) bool {
	_, err := os.Stat(args)
	return err == nil
}
