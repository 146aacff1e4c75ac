// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// setup is the settings of a simulation.
type setup struct {
	pool.Limits
	Quota                   int // 0 for none
	SchedulingTimeout, Scan time.Duration
	Template                string
	// Faults reports whether things go wrong that no stimulus asks for.
	Faults bool
}

func (s setup) config() pool.Config {
	limits := s.Limits
	return pool.Config{
		Limits:       func(pool.Function) pool.Limits { return limits },
		ScanInterval: s.Scan, SchedulingTimeout: s.SchedulingTimeout,
		Template: s.Template, PodName: simName, PodID: simID,
	}
}

// simID is an id. Function c shares those of a, as a copy in another repository does.
func simID(f pool.Function, slot int) string {
	return strings.ReplaceAll(f.Reference, "c", "a") + "-" + strconv.Itoa(slot)
}

func simName(f pool.Function, slot int, predecessor string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(predecessor))
	return fmt.Sprintf("%s-%d-%08x", f.Reference, slot, h.Sum32())
}

// stimulus is one thing that is done to a machine or its world.
type stimulus struct {
	ID       int
	At       time.Duration
	What     string
	Function string
	// N chooses among what there is, or says how much.
	N             int
	Hold, Timeout time.Duration
}

func (s stimulus) String() string {
	text := fmt.Sprintf("%8.3f %s", s.At.Seconds(), s.What)
	if s.Function != "" {
		text += " " + s.Function
	}
	if s.N != 0 {
		text += fmt.Sprintf(" n=%d", s.N)
	}
	if s.Hold != 0 {
		text += fmt.Sprintf(" hold=%s", s.Hold)
	}
	if s.Timeout != 0 {
		text += fmt.Sprintf(" timeout=%s", s.Timeout)
	}
	return text
}

// script is a simulation: the same one goes the same way.
type script struct {
	Seed    uint64
	Setup   setup
	Stimuli []stimulus
}

func (s script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %+v\n", s.Seed, s.Setup)
	for _, stimulus := range s.Stimuli {
		fmt.Fprintln(&b, stimulus)
	}
	return b.String()
}

// others are the stimuli other than requests.
var others = []string{
	"restart", "crash", "crash", "evict", "end", "kill", "sicken", "sicken", "container restarts",
	"nodes full", "image broken", "api down", "template", "settings", "limits", "global", "minimum", "strip",
	"replica extends", "replica extends", "replica creates", "replica creates",
}

func pick[T any](r *rand.Rand, options ...T) T { return options[r.IntN(len(options))] }

func seconds(r *rand.Rand, n int) time.Duration {
	return time.Duration(r.IntN(n*1000)) * time.Millisecond
}

// generate makes a script up.
func generate(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 1))
	s := script{Seed: seed, Setup: setup{
		Limits: pool.Limits{
			MaxPods:           pick(r, 1, 1, 2, 3),
			MaxWaitlistLength: pick(r, 1, 2),
			MaxConcurrency:    pick(r, 1, 2, 4),
			MaxQueue:          pick(r, 3, 100),
			TTL:               pick(r, 10*time.Second, 30*time.Second, time.Minute, 5*time.Minute),
			ReadyTimeout:      pick(r, 10*time.Second, time.Minute),
		},
		Quota:             pick(r, 0, 0, 2, 3, 5),
		SchedulingTimeout: pick(r, 2*time.Second, 10*time.Second),
		Scan:              pick(r, 10*time.Second, time.Minute),
		Template:          "v0",
		Faults:            r.IntN(3) > 0,
	}}
	functions := []string{"a", "b", "c", "d"}[:1+r.IntN(4)]
	trouble := r.IntN(5) // of ten
	span := pick(r, 10, 60, 240)
	for i := range 5 + r.IntN(50) {
		st := stimulus{ID: i, At: seconds(r, span), Function: pick(r, functions...), N: r.IntN(20)}
		if r.IntN(10) < trouble {
			st.What = pick(r, others...)
			s.Stimuli = append(s.Stimuli, st)
			continue
		}
		st.What = "request"
		st.Hold = seconds(r, pick(r, 1, 10))
		if r.IntN(4) == 0 {
			st.Timeout = seconds(r, 10)
		}
		s.Stimuli = append(s.Stimuli, st)
		for range r.IntN(3) * r.IntN(3) { // a burst
			st.ID += 1000
			s.Stimuli = append(s.Stimuli, st)
		}
	}
	slices.SortStableFunc(s.Stimuli, func(a, b stimulus) int { return cmp.Compare(a.At, b.At) })
	return s
}
