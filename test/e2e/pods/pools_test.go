// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// echo is a function that returns its input.
func echo(t testing.TB) string {
	return s.Registry(t, "open").Host + "/" + conformance.Repository("echo") + ":v1"
}

// evaluateMany evaluates a function for many callers at the same time, and returns their errors.
func evaluateMany(ctx context.Context, conn *grpc.ClientConn, image string, callers, times int) []error {
	var mu sync.Mutex
	var errs []error
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range times {
				out, err := evaluate(ctx, conn, image, conformance.List)
				if err == nil && out != conformance.List {
					err = fmt.Errorf("the function returned %q", out)
				}
				if err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	return errs
}

func TestManyCallersOfAColdFunction(t *testing.T) {
	const callers, maxPods = 200, 4
	eachMode(t, map[string]string{"FNR_MAX_PODS_PER_FUNCTION": "4"}, func(t *testing.T, sys *system) {
		conn := sys.connect(t)
		if errs := evaluateMany(suite.Context(t), conn, echo(t), callers, 1); len(errs) > 0 {
			t.Errorf("%d of %d callers got an error, the first: %v", len(errs), callers, errs[0])
		}
		suite.Until(suite.Context(t), t, "there are as many pods as are allowed", func() (bool, string) {
			slots := make(map[string]string)
			for _, pod := range sys.functionPods(t) {
				slot := pod.Annotations["krm-function-runner.github.io/slot"]
				if other, taken := slots[slot]; taken {
					t.Fatalf("%s and %s are both in slot %s", other, pod.Name, slot)
				}
				slots[slot] = pod.Name
			}
			return len(slots) == maxPods, fmt.Sprint(slots)
		})
		// A lease ends right after its caller has the answer.
		suite.Until(suite.Context(t), t, "nothing is leased", func() (bool, string) {
			now := pools(t, conn)
			return !slices.ContainsFunc(now,
				func(p *podmanagerv1.Pool) bool { return p.GetActive() != 0 || p.GetWaiting() != 0 }), fmt.Sprint(now)
		})
		want := callers + sys.retries(t)
		for _, pool := range pools(t, conn) {
			if pool.GetLeasesTotal() != want {
				t.Errorf("the pool had %d leases, want %d: one for each caller and retry", pool.GetLeasesTotal(), want)
			}
		}
	})
}

func warmPathAsksKubernetesForNothing(t *testing.T, sys *system) {
	ctx, conn := suite.Context(t), sys.connect(t)
	if errs := evaluateMany(ctx, conn, echo(t), 1, 1); len(errs) > 0 {
		t.Fatal(errs[0])
	}
	start := time.Now()
	if errs := evaluateMany(ctx, conn, echo(t), 4, 250); len(errs) > 0 {
		t.Fatalf("%d errors, the first: %v", len(errs), errs[0])
	}
	// Watches appear in the audit log when they end, which they do from time to time. Once a minute each replica asks
	// whether Porch's resources have been installed, and every few seconds it renews its Lease and lists the others'. The
	// expiry of the pod in use is extended after a tenth of its time to live, which a busy machine may need for the test.
	const installed = "/apis/config.porch.kpt.dev/v1alpha1"
	extensions := 0
	for _, r := range s.Requests(t, sys.services, "default", start) {
		switch {
		case r.Verb == "patch" && r.Object.Resource == "pods":
			extensions++
		case r.Verb != "watch" && !strings.HasPrefix(r.URI, installed) && r.Object.Resource != "leases":
			t.Errorf("during 1,000 warm evaluations there was %s %s", r.Verb, r.URI)
		}
	}
	if most := 1 + int(time.Since(start)/time.Minute); extensions > most {
		t.Errorf("during 1,000 warm evaluations pods were patched %d times, want %d times at most", extensions, most)
	}
	// The log has the earlier requests, so it is the right one.
	if all := s.Requests(t, sys.services, "default", time.Time{}); len(all) == 0 {
		t.Error("the audit log has no request of the services at all")
	}
}

// restartAdoptsPods restarts the program that manages pods. The next evaluation of a function with
// a pod is warm.
func restartAdoptsPods(t *testing.T, sys *system) {
	ctx := suite.Context(t)
	before := sys.echoPods(t)
	if len(before) == 0 {
		t.Fatal("there is no pod of echo before the restart")
	}
	sys.restart(t)
	conn, retries := sys.connect(t), sys.retries(t)
	if _, err := evaluate(ctx, conn, echo(t), conformance.List); err != nil {
		t.Fatal(err)
	}
	var is *podmanagerv1.Pool
	suite.Until(ctx, t, "the pods are the same as before", func() (bool, string) {
		after := sys.echoPods(t)
		is = pool(t, conn, echo(t))
		adopted := slices.Equal(before, after) && len(is.GetPods()) == 1
		return adopted, fmt.Sprint("before: ", before, ", now: ", after, ", ", is)
	})
	retries = sys.retries(t) - retries
	if is.GetLeasesTotal() != 1+retries || is.GetColdStartsTotal() != 0 || !is.GetPods()[0].GetAdopted() {
		t.Errorf("with %d retries the pool is %v, want one lease more, no cold start and an adopted pod", retries, is)
	}
}

// echoPods returns the sorted UIDs of the pods of echo.
func (sys *system) echoPods(t *testing.T) []types.UID {
	t.Helper()
	var uids []types.UID
	for _, pod := range sys.functionPods(t) {
		if strings.HasPrefix(pod.Name, "echo-") {
			uids = append(uids, pod.UID)
		}
	}
	return slices.Sorted(slices.Values(uids))
}

func names(pods []corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// recreate deletes a pod of the services, and starts it again.
func (sys *system) recreate(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	ctx := suite.Context(t)
	if err := s.Client.CoreV1().Pods(sys.services).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.AwaitGone(ctx, t, sys.services, pod.Name)
	return sys.start(t, pod.DeepCopy())
}
