// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// skaffoldNoticesAChange changes a log line of pod-manager while skaffold watches: the change runs
// soon, and the other services keep running.
func skaffoldNoticesAChange(t *testing.T) {
	sources := copyOfSources(t)
	usual.clean(t)
	developing(t, sources)
	before := podsOf(t, "gateway", "image-resolver")

	const old, changed = "launcher chosen", "launcher chosen after a change"
	file := filepath.Join(sources, "services/pod-manager/internal/kube/launching.go")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("%s does not log %q", file, old)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(content, []byte(old), []byte(changed)), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	awaitLog(t, "pod-manager", changed)
	t.Logf("the change runs after %s", time.Since(begin).Round(100*time.Millisecond))
	for name, uid := range podsOf(t, "gateway", "image-resolver") {
		if before[name] != uid {
			t.Errorf("pod %s is new", name)
		}
	}
}

// copyOfSources copies the repository's files to a directory where they may be changed.
func copyOfSources(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(suite.Context(t), "git", "ls-files", "-z")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// developing runs `skaffold dev` until the test ends, and returns when everything is deployed and
// it watches for changes.
func developing(t *testing.T, sources string) {
	t.Helper()
	run := skaffold(t, sources, "dev", "--profile=microservices", "--port-forward=off", "--tail=false")
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGINT) }
	run.WaitDelay = time.Minute // it removes what it deployed
	output := &transcript{watching: make(chan struct{})}
	run.Stdout, run.Stderr = output, output
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	t.Cleanup(func() {
		_ = run.Cancel() // it may have ended
		<-ended
		if t.Failed() {
			t.Log(output)
		}
	})
	select {
	case <-output.watching:
	case err := <-ended:
		ended <- err
		t.Fatalf("skaffold dev ended: %v", err)
	}
}

// transcript is the output of skaffold.
type transcript struct {
	mu       sync.Mutex
	text     bytes.Buffer
	once     sync.Once
	watching chan struct{} // closes when skaffold reports that it watches for changes
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if bytes.Contains(o.text.Bytes(), []byte("Watching for changes")) {
		o.once.Do(func() { close(o.watching) })
	}
	return len(p), nil
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// podsOf returns the pods of Deployments.
func podsOf(t *testing.T, names ...string) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, name := range names {
		pods, err := s.Client.CoreV1().Pods(usual.system).List(suite.Context(t),
			metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil || len(pods.Items) == 0 {
			t.Fatalf("no pods of %s: %v", name, err)
		}
		for _, pod := range pods.Items {
			found[pod.Name] = pod.UID
		}
	}
	return found
}

// awaitLog waits until a ready pod of a Deployment has logged a text.
func awaitLog(t *testing.T, name, text string) {
	t.Helper()
	for ctx := suite.Context(t); ; <-time.After(200 * time.Millisecond) {
		pods, err := s.Client.CoreV1().Pods(usual.system).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			t.Fatalf("no pod of %s has logged %q: %v", name, text, err)
		}
		for _, pod := range pods.Items {
			if suite.Ready(&pod) && strings.Contains(logOf(ctx, usual.system, pod.Name, nil), text) {
				return
			}
		}
	}
}

// logOf returns the log of a pod since a time, or its whole log if since is nil. It returns nothing if the pod is being
// deleted.
func logOf(ctx context.Context, namespace, pod string, since *metav1.Time) string {
	options := &corev1.PodLogOptions{SinceTime: since}
	stream, err := s.Client.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return ""
	}
	defer func() { _ = stream.Close() }()
	content, _ := io.ReadAll(stream)
	return string(content)
}
