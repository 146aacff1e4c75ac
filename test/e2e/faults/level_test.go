//go:build e2e

package faults_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

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

// returnsTo waits until there is no more of anything than before.
func (sys *system) returnsTo(t *testing.T, before level) {
	t.Helper()
	ctx := suite.Context(t)
	suite.Until(ctx, t, "there is no more of anything than before", func() (bool, string) {
		after := sys.level(ctx, t)
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
func (sys *system) level(ctx context.Context, t testing.TB) level {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(sys.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := level{"function pods": len(pods.Items)}
	for _, pool := range sys.pools(ctx, t) {
		now["active leases"] += int(pool.GetActive())
		now["waiting leases"] += int(pool.GetWaiting())
	}
	for name := range sys.pods {
		maps.Copy(now, sys.levelOf(ctx, t, name))
	}
	return now
}

// goroutinesPerConnection is how many a client of HTTP has for a connection that it keeps.
const goroutinesPerConnection = 2

// levelOf is how much a program has, without what it keeps for registries.
func (sys *system) levelOf(ctx context.Context, t testing.TB, name string) level {
	t.Helper()
	kept, others := connections(t, find(t, sys.pods[name], program(sys.pods[name])).pid)
	return level{
		name + "'s " + goroutines: sys.metric(ctx, t, name, "go_goroutines") - goroutinesPerConnection*kept,
		name + "'s " + tcp:        others,
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
