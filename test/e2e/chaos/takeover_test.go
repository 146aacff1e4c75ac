// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/ownership"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// settling is how long a takeover is watched. All that it consists of is over by then.
const settling = 12 * time.Second

// takeovers ends an owner of functions while they are warm, and then has one stand still: no caller
// fails, and no function gets a new pod. It prints how long callers wait.
func takeovers(ctx context.Context, t *testing.T, c *crowd, w *watcher) {
	t.Helper()
	for _, name := range []string{"kill", "stop"} {
		calling, stopCalling := context.WithCancel(ctx)
		c.warm(calling) // no pod in use expires, whatever else takes long
		pod, process := c.sys.owner(ctx, t, w, c.images[0])
		before := c.sys.functionPods(t)
		begin := time.Now()
		if name == "kill" {
			killReplica(ctx, t, pod, process)
		} else if err := unix.Kill(process.PID, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		<-time.After(settling)
		stopCalling()
		c.wait()
		took := c.during(begin, time.Now())
		t.Logf("%s of the owner of warm functions: %d answers in the %v after it, p50 %v, p99 %v, slowest %v",
			name, len(took), settling, quantile(took, 50), quantile(took, 99), quantile(took, 100))
		for pod, image := range c.sys.functionPods(t) {
			if _, known := before[pod]; !known {
				t.Errorf("%s of an owner had a new pod start, of %s", name, image)
			}
		}
		if name == "stop" {
			_ = unix.Kill(process.PID, unix.SIGCONT)
		}
		c.sys.awaitCalm(t)
	}
}

// warm has one caller for each function, until ctx ends. It returns when each has an answer.
func (c *crowd) warm(ctx context.Context) {
	var answered sync.WaitGroup
	for _, image := range c.images {
		answered.Add(1)
		c.ended.Go(func() {
			c.add(c.call(context.WithoutCancel(ctx), image, 0))
			answered.Done()
			for ctx.Err() == nil {
				<-time.After(50 * time.Millisecond)
				c.add(c.call(context.WithoutCancel(ctx), image, 0))
			}
		})
	}
	answered.Wait()
}

// owner returns the pod-manager that owns a function, with its process.
func (sys *system) owner(ctx context.Context, t *testing.T, w *watcher, image string) (*corev1.Pod, suite.Process) {
	t.Helper()
	var found *corev1.Pod
	suite.Until(ctx, t, "a function has an owner", func() (bool, string) {
		pods, err := sys.running(ctx, "pod-manager")
		if err != nil {
			return false, err.Error()
		}
		addresses := w.owners()
		owner := ownership.Owner(addresses, image)
		for i := range pods {
			if owner >= 0 && addresses[owner] == pods[i].Status.PodIP+":9448" {
				found = &pods[i]
			}
		}
		return found != nil, "none"
	})
	process, ok := processOf(t, found)
	if !ok {
		t.Fatalf("pod %s has no process", found.Name)
	}
	return found, process
}

// owners returns the addresses of the replicas that own functions now.
func (w *watcher) owners() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.divisions) == 0 {
		return nil
	}
	return w.divisions[len(w.divisions)-1].addresses
}

// functionPods returns the images of the function pods, by their UIDs.
func (sys *system) functionPods(t *testing.T) map[types.UID]string {
	t.Helper()
	list, err := s.Client.CoreV1().Pods(sys.functions).List(suite.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := make(map[types.UID]string)
	for i := range list.Items {
		pods[list.Items[i].UID] = list.Items[i].Annotations[imageAnnotation]
	}
	return pods
}

// lostAfter returns how long after a harm other replicas owned the functions of one; false if none did.
func (w *watcher) lostAfter(h *happening) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	address := w.addresses[h.what]
	for _, d := range w.divisions {
		if address == "" || d.at.After(h.begin.Add(handover)) {
			break
		}
		if d.at.After(h.begin) && !slices.Contains(d.addresses, address) {
			return d.at.Sub(h.begin), true
		}
	}
	return 0, false
}
