// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/fnctl/internal/forward"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kubectl puts a program of that name first in PATH, which keeps its arguments in a file.
func kubectl(t *testing.T, script string) (args string) {
	t.Helper()
	dir := t.TempDir()
	args = filepath.Join(dir, "args")
	content := "#!/bin/sh\necho \"$@\" >> " + args + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")) //nolint:forbidigo // of the test
	return args
}

// echo is a server that sends back what it gets.
func echo(t *testing.T) (address string) {
	t.Helper()
	l := servetest.Listen(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String()
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

func dial(t *testing.T, f *forward.Forwarder) error {
	t.Helper()
	conn, err := f.Dial(t.Context())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	answer := make([]byte, 1)
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err = conn.Read(answer)
	return err
}

// TestOneKubectlForAllConnections connects several times.
func TestOneKubectlForAllConnections(t *testing.T) {
	args := kubectl(t, "echo 'Forwarding from "+echo(t)+" -> 9445'\necho 'Forwarding from [::1]:1 -> 9445'\n"+
		"exec sleep 600\n")
	f := forward.New(forward.Config{
		Cluster: forward.Cluster{Namespace: "porch-system"}, Service: "function-runner", Port: "9445",
	})
	for range 3 {
		if err := dial(t, f); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	want := "--namespace=porch-system port-forward --address=127.0.0.1 service/function-runner :9445"
	if got := lines(t, args); len(got) != 1 || got[0] != want {
		t.Errorf("kubectl was started with %q, want %q once", got, want)
	}
}

// TestAKubectlThatEndedIsStartedAgain has it end with its pod.
func TestAKubectlThatEndedIsStartedAgain(t *testing.T) {
	address := echo(t)
	args := kubectl(t, "echo 'Forwarding from "+address+" -> 9445'\n")
	f := forward.New(forward.Config{
		Cluster: forward.Cluster{Context: "c", Kubeconfig: "k"}, Service: "gateway", Port: "9443",
	})
	defer f.Close()
	await.Equal(t, "kubectl is started again", func() bool {
		if err := dial(t, f); err != nil {
			t.Fatal(err)
		}
		return len(lines(t, args)) > 1
	}, true)
}

// TestDialAfterTheEndStartsNoKubectl has connections wait while kubectl hangs, and callers stop.
func TestDialAfterTheEndStartsNoKubectl(t *testing.T) {
	args := kubectl(t, "exec sleep 600\n")
	f := forward.New(forward.Config{Service: "gateway", Port: "9445"})
	ctx, cancel := context.WithCancel(t.Context())
	var dials sync.WaitGroup
	for range 5 {
		dials.Go(func() {
			if _, err := f.Dial(ctx); err == nil {
				t.Error("connected")
			}
		})
	}
	await.Equal(t, "kubectl runs", func() bool { _, err := os.Stat(args); return err == nil }, true)
	cancel()
	dials.Wait()
	f.Close()
	if got := lines(t, args); len(got) != 1 {
		t.Errorf("kubectl was started %d times, want once", len(got))
	}
}

func TestWhyThereIsNoConnection(t *testing.T) {
	const hangs = "no connection yet"
	for name, test := range map[string]struct{ script, want string }{
		"no Service": {
			"echo 'Error from server (NotFound): services \"gateway\" not found' >&2; exit 1\n",
			`kubectl port-forward ended: Error from server (NotFound): services "gateway" not found`,
		},
		"no words":        {"exit 1\n", "it says nothing"},
		"no end of words": {"head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1\n", "ended: xxx"},
		"an endless line": {"head -c 100000 /dev/zero | tr '\\0' x; exec sleep 600\n", "ended"},
		hangs:             {"echo waiting >&2; exec sleep 600\n", "no connection"},
	} {
		t.Run(name, func(t *testing.T) {
			kubectl(t, test.script)
			f := forward.New(forward.Config{Service: "gateway", Port: "9445"})
			defer f.Close()
			timeout := 5 * time.Minute
			if name == hangs {
				timeout = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := f.Dial(ctx)
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 5000 {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	_, err := forward.New(forward.Config{Service: "gateway", Port: "9445"}).Dial(t.Context())
	if err == nil || !strings.Contains(err.Error(), "install kubectl") {
		t.Errorf("without kubectl: %v", err)
	}
}
