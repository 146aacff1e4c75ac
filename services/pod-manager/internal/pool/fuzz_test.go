// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// FuzzMachine feeds a machine events in any order, also such as no Kubernetes would
// send: the referee's promises hold all the same.
func FuzzMachine(f *testing.F) {
	for seed := range uint64(64) {
		r := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 240)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Add([]byte{0, 0, 0, 0, 2, 0, 0, 7, 6, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if newFuzz(false).play(data) != nil {
			z := newFuzz(true)
			t.Fatalf("%v\nafter\n%s", z.play(data), strings.Join(z.log, "\n"))
		}
	})
}

// play plays all events, and returns what broke, if anything.
func (z *fuzz) play(data []byte) error {
	for bytes := range slices.Chunk(data, eventSize) {
		z.step(bytes)
	}
	z.finish()
	return z.err
}

// eventSize is how many bytes make one event.
const eventSize = 4

// fuzz turns bytes into events.
type fuzz struct {
	setup   setup
	now     time.Time
	referee *referee
	leases  pool.LeaseID
	pods    []pool.Observation
	asked   map[string]uint64 // the last question for a pod's health
	err     error
	logs    bool
	log     []string
}

func newFuzz(logs bool) *fuzz {
	z := &fuzz{now: start, logs: logs, asked: make(map[string]uint64), setup: setup{
		Limits: pool.Limits{
			MaxPods: 2, MaxWaitlistLength: 1, MaxConcurrency: 2, MaxQueue: 5,
			TTL: time.Minute, ReadyTimeout: 20 * time.Second,
		},
		SchedulingTimeout: 5 * time.Second, Scan: 10 * time.Second, Template: "v0",
	}}
	z.referee = newReferee(z.setup.config())
	z.referee.irregular = true
	return z
}

// step plays the event that the next bytes mean; too few are followed by zeros.
func (z *fuzz) step(data []byte) {
	var b [eventSize]byte
	copy(b[:], data)
	f := pool.Function{Reference: string(rune('a' + b[1]%3)), Digest: "sha256:0"}
	o := pool.Observation{Name: "stranger", UID: "stranger"}
	if n := len(z.pods); n > 0 {
		o = z.pods[int(b[1])%n]
	}
	switch b[0] % 12 {
	case 0, 1:
		z.leases++
		avoid := []string{o.Name}
		if n := len(z.pods); n > 0 && b[2]&1 > 0 {
			avoid = append(avoid, z.pods[int(b[3])%n].Name)
		}
		z.tell(pool.LeaseRequested{Lease: z.leases, Function: f, Avoid: avoid})
	case 2, 3:
		z.tell(pool.LeaseEnded{Lease: pool.LeaseID(b[1]), Broken: []string{"", "broken"}[b[2]%2]})
	case 4, 5:
		z.observe(o, b)
	case 6:
		z.tell(pool.PodGone{Name: o.Name, UID: o.UID})
	case 7:
		z.tell(pool.CreateFailed{Name: o.Name, Problem: pool.Problem{Kind: pool.ProblemKind(b[2] % 5)}})
	case 8:
		z.tell(pool.DeleteFailed{Name: o.Name, UID: o.UID})
	case 9:
		z.tell(pool.Probed{
			Name:      o.Name,
			UID:       o.UID,
			Question:  z.asked[o.Name] - uint64(b[2]>>7),
			Unhealthy: []string{"", "unhealthy"}[b[2]%2],
		})
	case 10:
		z.configure(f, b)
	case 11:
		// Not so far that the end of a pod is forgotten: a UID never comes again.
		if d := time.Duration(b[2]) * 100 * time.Millisecond; z.now.Add(d).Before(start.Add(8 * time.Minute)) {
			z.now = z.now.Add(d)
		}
		z.tell(pool.Tick{})
	}
}

// observe shows a pod in some condition, which may be one of another manager's.
func (z *fuzz) observe(o pool.Observation, b [eventSize]byte) {
	if b[2]&1 == 0 || o.Name == "stranger" {
		o.Function = pool.Function{Reference: string(rune('a' + b[1]%3)), Digest: "sha256:0"}
		o.Slot = int(b[2]>>1)%4 - 1
		o.Name = simName(o.Function, o.Slot, []string{"", "another"}[b[2]>>3&1])
		o.UID = fmt.Sprint(o.Name, b[2]>>4&1)
		z.pods = append(z.pods, o)
	}
	o.ResourceVersion = fmt.Sprint(b)
	o.Phase = pool.Phase(b[3] % 8)
	o.Deleting = b[3]&8 > 0
	if b[3]&16 > 0 || o.Phase == pool.PhaseConnecting {
		o.Address = o.Name + ":9446"
	}
	if b[3]&32 > 0 {
		kind := pool.ProblemKind(b[3] >> 6)
		o.Problem = pool.Problem{Kind: kind, Reason: "a problem", OutOfMemory: kind == pool.Lost}
	}
	if b[2]&64 > 0 {
		o.ReclaimAfter = z.now.Add(time.Duration(b[3]) * time.Second)
	}
	o.Created = start.Add(time.Duration(b[2]>>6) * time.Second)
	o.TemplateVersion = z.setup.Template
	z.tell(pool.PodObserved{Observation: o})
}

func (z *fuzz) configure(f pool.Function, b [eventSize]byte) {
	switch b[2] % 3 {
	case 0:
		z.tell(pool.MinPodsSet{Function: f, Pods: int(b[3] % 2)})
		return
	case 1:
		z.setup.Template = fmt.Sprint("v", b[3]%3)
	case 2:
		z.setup.MaxPods = int(b[3] % 4)
		z.setup.MaxConcurrency = int(b[3] >> 2 % 4)
		z.setup.MaxQueue = int(b[3] >> 4 % 4)
	}
	z.tell(pool.Configured{Config: z.setup.config()})
}

// tell tells the machine an event, and remembers the pods that it creates.
func (z *fuzz) tell(event pool.Event) {
	if z.err != nil {
		return
	}
	z.note("%s <- %s", z.now.Sub(start), event)
	actions, err := z.referee.handle(z.now, event)
	z.err = err
	for _, action := range actions {
		z.note("%s      -> %s", z.now.Sub(start), action)
		if probe, ok := action.(pool.Probe); ok {
			z.asked[probe.Name] = probe.Question
		}
		if c, ok := action.(pool.Create); ok {
			z.pods = append(z.pods, pool.Observation{
				Name:     c.Name,
				UID:      c.Name + "#" + strconv.Itoa(len(z.pods)),
				Function: c.Function,
				Slot:     c.Slot,
			})
		}
	}
}

func (z *fuzz) note(format string, at time.Duration, what any) {
	if z.logs {
		z.log = append(z.log, fmt.Sprintf(format, at, describe(what)))
	}
}

// finish ends all leases and pods: nothing is left then.
func (z *fuzz) finish() {
	for lease := range z.leases {
		z.tell(pool.LeaseEnded{Lease: lease + 1})
	}
	for _, f := range []string{"a", "b", "c"} {
		z.tell(pool.MinPodsSet{Function: pool.Function{Reference: f, Digest: "sha256:0"}})
	}
	for range 2 {
		for _, p := range z.referee.pools {
			for _, pod := range p.Pods {
				z.tell(pool.PodGone{Name: pod.Name, UID: pod.UID})
			}
		}
	}
	if z.err == nil {
		z.err = z.referee.atRest()
	}
}
