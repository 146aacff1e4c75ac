// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/membership"
)

// member is a replica with its connection to the Kubernetes API.
type member struct {
	*membership.Keeper
	link *Link
	end  func()

	mu      sync.Mutex
	changes []membership.Owners
	log     strings.Builder
}

// join starts a replica in the bubble of t.
func join(t *testing.T, server *Server, n int, change ...func(*membership.Config)) *member {
	t.Helper()
	client, link := server.Client("test")
	r := &member{link: link}
	start := time.Now()
	config := membership.Config{
		Leases:  client.CoordinationV1().Leases("fns"),
		Replica: fmt.Sprintf("replica-%d", n), Address: fmt.Sprintf("10.0.0.%d:9448", n),
		Now: func() time.Time { return start.Add(time.Since(start)) },
		Changed: func(o membership.Owners) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changes = append(r.changes, o)
		},
		Log: slog.New(slog.NewTextHandler(&r.log, nil)), Meter: noop.Meter{},
	}
	for _, c := range change {
		c(&config)
	}
	r.Keeper = membership.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	r.end = func() { cancel(); <-ended }
	t.Cleanup(r.end)
	return r
}

// joinBoth starts two replicas, and waits until each owns its part.
func joinBoth(t *testing.T) (server *Server, a, b *member) {
	t.Helper()
	server = newServer(nil)
	a, b = join(t, server, 1), join(t, server, 2)
	wait(4 * time.Second)
	return server, a, b
}

// kill ends a replica that cannot say so.
func (r *member) kill() {
	r.link.Cut()
	r.end()
}

func images() []string {
	all := make([]string, 0, 60)
	for i := range 60 {
		all = append(all, fmt.Sprintf("example.com/fn-%d:v1", i))
	}
	return all
}

// owned counts the images of which each replica says that it owns them, and fails if two do.
func owned(t *testing.T, replicas ...*member) []int {
	t.Helper()
	counts := make([]int, len(replicas))
	for _, image := range images() {
		owners := 0
		for i, r := range replicas {
			if r.Owners().Owner(image).Mine {
				counts[i]++
				owners++
			}
		}
		if owners > 1 {
			t.Fatalf("%d replicas own %s at %v: %+v %s %s", owners, image, time.Now(), replicas[0].Owners(),
				replicas[0].log.String(), replicas[1].log.String())
		}
	}
	return counts
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func TestEachFunctionHasOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		a, b, c := join(t, server, 1), join(t, server, 2), join(t, server, 3)
		wait(4 * time.Second)
		counts := owned(t, a, b, c)
		if sum(counts) != 60 || min(counts[0], counts[1], counts[2]) < 10 {
			t.Errorf("replicas own %v of 60 functions", counts)
		}
		for _, image := range images() {
			for _, r := range []*member{a, b, c} {
				owner := r.Owners().Owner(image)
				if owner.Mine == (owner.Address != "") {
					t.Errorf("owner %+v of %s", owner, image)
				}
			}
		}
	})
}

func TestLeavingReplicaIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := joinBoth(t)
		a.end()
		wait(4 * time.Second) // one interval
		if counts := owned(t, b); counts[0] != 60 {
			t.Errorf("the replica that stays owns %v of 60 functions", counts)
		}
	})
}

// TestReplicaThatStopsDuringARenewalIsReplacedAtOnce ends a replica while the request that renews its Lease is on its
// way: the replica still deletes the Lease.
func TestReplicaThatStopsDuringARenewalIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a, b := joinBoth(t)
		a.link.Lag(0, 200*time.Millisecond)
		a.Leave()
		wait(50 * time.Millisecond)
		a.end()
		wait(4 * time.Second)
		if counts := owned(t, b); counts[0] != 60 {
			t.Errorf("the replica that stays owns %v of 60 functions", counts)
		}
		client, _ := server.Client("test")
		list, err := client.CoordinationV1().Leases("fns").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("%d Leases, %v: want only that of the replica that stays", len(list.Items), err)
		}
	})
}

func TestSilentReplicaIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := joinBoth(t)
		a.kill()
		wait(6 * time.Second)
		if counts := owned(t, b); counts[0] == 60 {
			t.Error("a replica that was silent for 6 s has lost its functions")
		}
		wait(13 * time.Second)
		if counts := owned(t, b); counts[0] != 60 {
			t.Errorf("the replica that lives owns %v of 60 functions", counts)
		}
	})
}

// TestCutOffReplicaStandsDown has a replica lose the API: it stops owning when another one begins to own the same
// functions.
func TestCutOffReplicaStandsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := joinBoth(t)
		a.link.Cut()
		var stopped time.Duration
		for begin := time.Now(); time.Since(begin) < 30*time.Second; wait(50 * time.Millisecond) {
			counts := owned(t, a, b)
			if counts[0] == 0 && stopped == 0 {
				stopped = time.Since(begin)
			}
			if counts[0] > 0 && stopped > 0 {
				t.Fatal("a replica that is cut off owns functions again")
			}
		}
		if stopped == 0 || stopped > 16*time.Second {
			t.Errorf("the replica stopped owning after %s", stopped)
		}
		a.mu.Lock()
		if last := a.changes[len(a.changes)-1]; last.StoodDown == "" {
			t.Error("its pools do not know that it stopped owning")
		}
		a.mu.Unlock()
		if counts := owned(t, b); counts[0] != 60 {
			t.Errorf("the other one owns %v of 60 functions", counts)
		}
		a.link.Heal()
		wait(8 * time.Second)
		if counts := owned(t, a, b); sum(counts) != 60 || counts[0] < 10 {
			t.Errorf("after the outage replicas own %v of 60 functions", counts)
		}
	})
}

// TestClocksAreNotCompared has a replica whose clock is a day ahead.
func TestClocksAreNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		a := join(t, server, 1)
		b := join(t, server, 2, func(c *membership.Config) {
			now := c.Now
			c.Now = func() time.Time { return now().Add(24 * time.Hour) }
		})
		wait(time.Minute)
		if counts := owned(t, a, b); sum(counts) != 60 || min(counts[0], counts[1]) < 10 {
			t.Errorf("replicas own %v of 60 functions", counts)
		}
	})
}

func TestReplicaThatStandsDownOwnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := joinBoth(t)
		a.StandDown("no pod answers")
		wait(4 * time.Second)
		if counts := owned(t, a, b); counts[0] != 0 || counts[1] != 60 {
			t.Errorf("replicas own %v of 60 functions", counts)
		}
		if lost := a.Owners().StoodDown; lost != "no pod answers" {
			t.Errorf("it owns nothing because of %q", lost)
		}
		for _, r := range []*member{a, b} { // gateways do not ask a replica that has stood down
			if got := r.Problems(); !slices.Equal(got, []string{"replica-1: no pod answers"}) {
				t.Errorf("a replica lists the problems %q", got)
			}
		}
		b.StandDown("no pod answers either")
		wait(4 * time.Second)
		if counts := owned(t, a, b); sum(counts) != 60 {
			t.Errorf("all stand down, and replicas own %v of 60 functions; none would collect the others", counts)
		}
		a.StandDown("")
		wait(4 * time.Second)
		if counts := owned(t, a, b); counts[0] != 60 {
			t.Errorf("replicas own %v of 60 functions", counts)
		}
	})
}

// TestReplicaThatDoesNotServeYetOwnsNothing, while another one serves: no gateway could ask it.
func TestReplicaThatDoesNotServeYetOwnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		starting := func(c *membership.Config) { c.Starting = "it starts" }
		a := join(t, server, 1, starting)
		wait(4 * time.Second)
		if counts := owned(t, a); counts[0] != 60 || a.Owners().StoodDown != "" {
			t.Errorf("the only replica owns %v of 60 functions", counts)
		}
		a.Started()
		b := join(t, server, 2, starting)
		b.StandDown("no pod answers")
		b.StandDown("")
		wait(10 * time.Minute)
		if counts := owned(t, a, b); counts[0] != 60 || b.Owners().StoodDown == "" {
			t.Errorf("one of two never serves, and they own %v of 60 functions", counts)
		}
		if got := slices.Concat(a.Problems(), b.Problems()); len(got) > 0 {
			t.Errorf("a start is listed as the problem %q", got)
		}
		b.StandDown("no pod answers")
		b.Started()
		b.StandDown("")
		wait(4 * time.Second)
		if counts := owned(t, a, b); sum(counts) != 60 || min(counts[0], counts[1]) < 10 {
			t.Errorf("both serve, and own %v of 60 functions", counts)
		}
		b.Leave()
		b.Started()
		b.StandDown("")
		wait(4 * time.Second)
		if counts := owned(t, a, b); counts[0] != 60 {
			t.Errorf("one ends, and they own %v of 60 functions", counts)
		}
		if got := slices.Concat(a.Problems(), b.Problems()); len(got) > 0 {
			t.Errorf("a shutdown is listed as the problem %q", got)
		}
	})
}

// TestSlowAPIEndsNoOwnership holds for latencies of up to 2.5 s, and right after an even slower time.
func TestSlowAPIEndsNoOwnership(t *testing.T) {
	for _, latency := range []time.Duration{1300 * time.Millisecond, 2500 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(nil)
				a := join(t, server, 1)
				wait(4 * time.Second)
				a.link.Lag(0, latency)
				for range 300 {
					wait(time.Second)
					if idle := a.Owners().StoodDown; idle != "" {
						t.Fatalf("it owns nothing: %s", idle)
					}
				}
				a.link.Lag(0, 6*time.Second)
				wait(time.Minute)
				a.link.Lag(0, latency)
				wait(20 * time.Second)
				if idle := a.Owners().StoodDown; idle != "" {
					t.Errorf("it owns nothing when the API answers after %s again: %s", latency, idle)
				}
			})
		})
	}
}

// TestEndingProcessLeavesTheLeaseOfItsSuccessor: two processes have one name.
func TestEndingProcessLeavesTheLeaseOfItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		former := join(t, server, 1)
		wait(4 * time.Second)
		former.link.Cut()
		successor := join(t, server, 1)
		wait(4 * time.Second)
		former.link.Heal()
		former.end()
		client, _ := server.Client("test")
		list, err := client.CoordinationV1().Leases("fns").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%d Leases, %v: want the successor's", len(list.Items), err)
		}
		if counts := owned(t, successor); counts[0] != 60 {
			t.Errorf("the successor owns %v of 60 functions", counts)
		}
	})
}

// TestForgottenLeasesAreDeleted has a replica die, and others find its Lease.
func TestForgottenLeasesAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		a := join(t, server, 1)
		b := join(t, server, 2)
		wait(4 * time.Second)
		a.kill()
		client, _ := server.Client("test")
		count := func() int {
			list, err := client.CoordinationV1().Leases("fns").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return len(list.Items)
		}
		wait(30 * time.Minute)
		if n := count(); n != 2 {
			t.Errorf("%d Leases after half an hour", n)
		}
		wait(time.Hour)
		if n := count(); n != 1 {
			t.Errorf("%d Leases an hour later", n)
		}
		b.end()
		if n := count(); n != 0 {
			t.Errorf("%d Leases after the last replica left", n)
		}
	})
}

// TestCostOfMembership bounds what a replica asks of the API.
func TestCostOfMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		join(t, server, 1)
		wait(10 * time.Minute)
		if n := server.Requests("update leases"); n > 210 || n < 170 {
			t.Errorf("%d writes in 10 minutes", n)
		}
		if n := server.Requests("list leases"); n > 210 {
			t.Errorf("%d lists in 10 minutes", n)
		}
		if n := server.Requests("get leases"); n > 1 {
			t.Errorf("%d reads in 10 minutes", n)
		}
	})
}

// TestReplicaGoesOnAfterAnOutage has the API away for less than a replica's time, often.
func TestReplicaGoesOnAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		a := join(t, server, 1)
		wait(4 * time.Second)
		for range 20 {
			a.link.Cut()
			wait(1700 * time.Millisecond)
			a.link.Heal()
			wait(5 * time.Second)
			if counts := owned(t, a); counts[0] != 60 {
				t.Fatalf("it owns %v of 60 functions: %s", counts, a.Owners().StoodDown)
			}
		}
	})
}
