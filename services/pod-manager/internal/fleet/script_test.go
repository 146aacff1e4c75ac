// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
)

var (
	seeds = flag.Uint64("fleet.seeds", 6, "how many simulations to run")
	first = flag.Uint64("fleet.seed", 0, "the first simulation to run")
)

// step is something that happens.
type step struct {
	At   time.Duration
	What string
	N    int // which replica, pod or function
	Hold time.Duration
}

func (s step) String() string { return fmt.Sprintf("%8s %s %d %s", s.At, s.What, s.N, s.Hold) }

// script is a simulation.
type script struct {
	Setup setup
	Steps []step
}

func (s script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", s.Setup)
	for _, step := range s.Steps {
		fmt.Fprintln(&b, step)
	}
	return b.String()
}

// faults are what may happen to replica 2 and later ones, to pods and to settings; the first replica
// is always well, so that each caller can be served.
var faults = []string{
	"kill", "leave", "add", "cut", "outage", "heal", "podless", "podful", "silent", "audible", "lag", "skew", "hang",
	"limit", "template",
}

func pick[T any](r *rand.Rand, options ...T) T { return options[r.IntN(len(options))] }

// generate makes up a script of two minutes.
func generate(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 7))
	s := script{Setup: usual()}
	s.Setup.Replicas = 2 + r.IntN(3)
	s.Setup.Quota = pick(r, 0, 0, 6)
	s.Setup.Alone = r.IntN(6) == 0
	s.Setup.Latency = pick(r, time.Millisecond, time.Millisecond, time.Millisecond, 1500*time.Millisecond)
	s.Setup.Unready = r.IntN(4) == 0
	s.Setup.InProcess = r.IntN(5) == 0
	s.Setup.Lag = pick(r, 5*time.Millisecond, 200*time.Millisecond, time.Second)
	s.Setup.Limits.TTL = pick(r, 20*time.Second, 2*time.Minute)
	// Callers of a replica that is cut off are sent on within 20 s, so less would rightly reject them.
	s.Setup.Limits.ReadyTimeout = pick(r, 30*time.Second, time.Minute)
	if s.Setup.Quota > 0 { // with less time, callers would rightly be rejected
		s.Setup.Limits.ReadyTimeout = time.Minute
	}
	possible := faults
	if s.Setup.Alone { // see docs/scale.md: a replica that is cut off cannot tell, and its callers wait
		possible = slices.DeleteFunc(slices.Clone(faults), func(fault string) bool { return fault == "cut" })
	}
	if s.Setup.InProcess { // callers of a replica that is cut off for longer than they wait cannot be served
		possible = slices.DeleteFunc(slices.Clone(possible), func(fault string) bool {
			return slices.Contains([]string{"cut", "podless", "silent"}, fault)
		})
	}
	trouble := r.IntN(4)
	for range 60 + r.IntN(60) {
		next := step{
			At: time.Duration(r.IntN(120_000)) * time.Millisecond, What: "call", N: r.IntN(10),
			Hold: time.Duration(r.IntN(5000)) * time.Millisecond,
		}
		if r.IntN(20) < trouble {
			next.What = pick(r, possible...)
		}
		s.Steps = append(s.Steps, next)
	}
	slices.SortStableFunc(s.Steps, func(a, b step) int { return cmp.Compare(a.At, b.At) })
	return s
}

// do does what a step says.
func (w *world) do(s step) {
	if s.What == "call" {
		w.call(image(s.N), s.Hold)
		return
	}
	w.mu.Lock()
	r := w.replicas[1+s.N%(len(w.replicas)-1)]
	more := len(w.replicas) < 8
	w.mu.Unlock()
	switch s.What {
	case "kill":
		r.kill()
	case "leave":
		r.leave()
	case "add":
		if more {
			w.add()
		}
	case "cut":
		r.link.Cut()
	case "outage":
		r.link.Cut()
		w.later(25*time.Second, r.link.Heal)
	case "heal":
		r.link.Heal()
	case "podless", "podful":
		r.podless.Store(s.What == "podless")
	case "silent", "audible":
		r.silent.Store(s.What == "silent")
	case "lag":
		r.link.Lag(time.Duration(s.N)*300*time.Millisecond, time.Duration(s.N)*20*time.Millisecond)
	case "skew":
		r.skew.Store(int64(time.Duration(s.N-5) * maxSkew / 5))
	case "hang":
		w.hang(s.N)
	case "limit":
		w.configure(func(settings *manager.Settings) { settings.Defaults.MaxPods = 1 + s.N%3 })
	case "template":
		w.changeTemplate()
	}
}

// maxSkew is how far a replica's clock is wrong at most. It goes by the API server's answers, which tell
// seconds.
const maxSkew = time.Second

// hang has a pod that is not in use answer no more; its kubelet does not notice.
func (w *world) hang(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if n--; n < 0 && !p.gone && w.countUses(p.uid, "") == 0 {
			p.silent = true
			return
		}
	}
}

// heal ends all faults.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.replicas {
		if r.dead.Load() {
			continue
		}
		r.link.Heal()
		r.link.Lag(w.setup.Lag, w.setup.Latency)
		r.podless.Store(false)
		r.silent.Store(false)
		r.skew.Store(0)
	}
}

// play plays a script, and returns the promises that were broken.
func (s script) play(t *testing.T) (broken []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s.Setup)
		defer w.end()
		wait(5 * time.Second)
		begin := time.Now()
		for _, step := range s.Steps {
			wait(step.At - time.Since(begin))
			w.do(step)
		}
		w.heal()
		wait(deadline + 10*time.Second) // all callers have an answer
		wait(s.Setup.Limits.TTL + 5*time.Minute)
		if pods := w.server.Pods(); len(pods) > 0 {
			w.fail("%d pods are never collected, such as %s", len(pods), pods[0].Name)
		}
		now := w.counts()
		total.requests += now.requests
		total.cold += now.cold
		total.created += now.created
		total.slowest = max(total.slowest, now.slowest)
		broken = now.failures
	})
	return broken
}

// total is what happened in all simulations.
var total counts

// TestFleet plays scripts, and prints the shortest one found by which a promise breaks.
func TestFleet(t *testing.T) {
	defer func() {
		t.Logf("%d requests, %d cold starts, %d pods created, slowest caller %s",
			total.requests, total.cold, total.created, total.slowest)
	}()
	for seed := *first; seed < *first+*seeds; seed++ {
		s := generate(seed)
		if broken := s.play(t); len(broken) > 0 {
			t.Logf("seed %d:\n%s", seed, strings.Join(broken, "\n"))
			s, broken = shrink(t, s, broken)
			t.Fatalf("%s\nby the script\n%s", strings.Join(broken, "\n"), s)
		}
	}
}

// shrink leaves out of a script what it breaks promises without. It returns the promises that it broke
// last: another time it may break none, since goroutines run in any order.
func shrink(t *testing.T, s script, broken []string) (script, []string) {
	for size := len(s.Steps) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(s.Steps); {
			shorter := script{s.Setup, slices.Concat(s.Steps[:i], s.Steps[i+size:])}
			if found := shorter.play(t); len(found) > 0 {
				s, broken = shorter, found
			} else {
				i += size
			}
		}
	}
	return s, broken
}
