//go:build e2e

package faults_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// leavesNothing removes the function's pods, and waits until nothing of it is there or
// in use.
func (f *function) leavesNothing(t *testing.T) {
	t.Helper()
	// The test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), 2*suite.Patience)
	defer cancel()
	ids := make(map[string]bool)
	for _, pod := range f.pods(ctx, t) {
		ids[pod.Labels[idLabel]] = true
		// There is nothing in it that it should finish.
		err := s.Client.CoreV1().Pods(functions).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err != nil {
			t.Logf("pod %s has gone already: %v", pod.Name, err)
		}
	}
	suite.Until(ctx, t, "the function's pods are gone", func() (bool, string) {
		pods := f.pods(ctx, t)
		return len(pods) == 0, fmt.Sprint(len(pods), " pods")
	})
	suite.Until(ctx, t, "no lease and no pod is left in the pool", func() (bool, string) {
		pool := f.pool(ctx, t)
		return pool.GetActive() == 0 && pool.GetWaiting() == 0 && len(pool.GetPods()) == 0, pool.String()
	})
	// What somebody else deletes leaves its Service for a minute. Those of other tests
	// are waited for, see abandon. The pod-manager knows that the pods are gone: it would
	// make their Services again.
	for id := range ids {
		if err := s.Client.CoreV1().Services(functions).Delete(ctx, id, metav1.DeleteOptions{}); err != nil {
			t.Logf("Service %s has gone already: %v", id, err)
		}
	}
}

// awaitNoService waits until there is no Service whose name begins so. With its pod
// gone it is collected once it is a minute old.
func awaitNoService(ctx context.Context, t testing.TB, prefix string) {
	t.Helper()
	suite.Until(ctx, t, "the pod's Service is gone", func() (bool, string) {
		all, err := s.Client.CoreV1().Services(functions).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, service := range all.Items {
			if strings.HasPrefix(service.Name, prefix) {
				return false, "Service " + service.Name
			}
		}
		return true, ""
	})
}

// level is how much there is of everything that could leak, by what it is.
type level map[string]int

// slack is how much more there may be: the kubelet asks for health at any time, and
// informers renew their watches. What leaks by each fault adds up to more.
const slack = 3

// exceeds lists what there is more of than in another level.
func (l level) exceeds(other level) []string {
	var more []string
	for what, n := range l {
		allowed := other[what]
		if strings.HasSuffix(what, goroutines) || strings.HasSuffix(what, tcp) {
			allowed += slack
		}
		if n > allowed {
			more = append(more, fmt.Sprintf("%d %s, before %d", n, what, other[what]))
		}
	}
	return more
}

// returnsTo waits until there is no more of anything than before; of the programs those
// of that name are looked at.
func (sys *system) returnsTo(t *testing.T, before level, names ...string) {
	t.Helper()
	ctx := suite.Context(t)
	suite.Until(ctx, t, "there is no more of anything than before", func() (bool, string) {
		after := sys.level(ctx, t, names...)
		more := after.exceeds(before)
		if len(more) == 0 {
			t.Logf("afterwards there are %v", after)
		}
		return len(more) == 0, strings.Join(more, "; ")
	})
}

// What the programs have.
const (
	goroutines = "goroutines"
	tcp        = "connections"
)

// level is how much there is now, in Kubernetes and in programs. Services without a
// pod stay for a minute: they are looked at in the end.
func (sys *system) level(ctx context.Context, t testing.TB, names ...string) level {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := level{"function pods": len(pods.Items)}
	for _, pool := range sys.pools(ctx, t) {
		now["active leases"] += int(pool.GetActive())
		now["waiting leases"] += int(pool.GetWaiting())
	}
	for _, name := range names {
		maps.Copy(now, sys.levelOf(ctx, t, name))
	}
	return now
}

// levelOf is how much a program has.
func (sys *system) levelOf(ctx context.Context, t testing.TB, name string) level {
	t.Helper()
	pod := sys.pods[name]
	return level{
		name + "'s " + goroutines: sys.metric(ctx, t, name, "go_goroutines"),
		name + "'s " + tcp:        connections(t, find(t, pod, program(name)).pid),
	}
}

// metric reads a metric of a program.
func (sys *system) metric(ctx context.Context, t testing.TB, name, metric string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+sys.pods[name].Status.PodIP+":9464/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // it counts connections
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), metric+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	t.Fatalf("%s has no metric %s: %v", name, metric, lines.Err())
	return 0
}

// connections counts the TCP connections of a process's pod, those included that only
// one side has closed.
func connections(t testing.TB, pid int) int {
	t.Helper()
	const state, established, closeWait = 3, "01", "08"
	n := 0
	for _, family := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, family))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); len(fields) > state && (fields[state] == established || fields[state] == closeWait) {
				n++
			}
		}
	}
	return n
}
