// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	podStart = 1500 * time.Millisecond // until a new pod is ready
	podSlots = 2                       // evaluations that a pod runs at a time
)

// rules returns the configuration of the pools without and with scaling ahead.
func rules() (present, ahead pool.Config) {
	present = pool.Config{
		MaxWaiting: 10000, ScanInterval: time.Minute, SchedulingTimeout: 10 * time.Second, Template: "v1",
		PodName: playName, PodID: playID,
		Limits: func(pool.Function) pool.Limits {
			return pool.Limits{
				MaxPods: 100, MaxWaitlistLength: 2, MaxConcurrency: 8, MaxQueue: 10000,
				TTL: 30 * time.Minute, ReadyTimeout: time.Minute,
			}
		},
	}
	ahead = present
	ahead.ScaleAhead = true
	return present, ahead
}

// load is requests for one function as they come over some hours.
type load struct {
	name   string
	length time.Duration
	most   float64                        // requests per second at most
	rate   func(at time.Duration) float64 // requests per second
}

// result is what callers and the cluster got out of a load.
type result struct {
	requests, waits, creations int
	waited, podTime            time.Duration
}

// add adds the result of another run.
func (r *result) add(other result) {
	r.requests += other.requests
	r.waits += other.waits
	r.creations += other.creations
	r.waited += other.waited
	r.podTime += other.podTime
}

// plant is a cluster without faults that serves one function, in virtual time.
type plant struct {
	now     time.Time
	agenda  agenda
	order   int
	machine *pool.Machine
	draws   *rand.Rand
	pods    map[string]*plantPod
	jobs    map[pool.LeaseID]job
	// answered is called when an evaluation has ended; nil for nothing.
	answered func()
	result
}

// plantPod is a pod, which runs podSlots evaluations at a time and has others wait.
type plantPod struct {
	created time.Time
	running int
	queue   []pool.LeaseID
}

// job is an evaluation.
type job struct {
	asked   time.Time
	service time.Duration
}

// serve runs a load to its end, with the same requests for a seed whatever the machine does.
func (l load) serve(seed uint64, service time.Duration, config pool.Config) result {
	p := newPlant(seed, config)
	p.request(l, service)
	return p.run(l.length)
}

// serveCallers runs callers that each call again as soon as they have an answer.
func serveCallers(seed uint64, callers int, service, length time.Duration, config pool.Config) result {
	p := newPlant(seed, config)
	p.answered = func() { p.ask(p.draw(service)) }
	for range callers {
		p.answered()
	}
	return p.run(length)
}

func newPlant(seed uint64, config pool.Config) *plant {
	return &plant{
		now: start, machine: pool.New(config), draws: rand.New(rand.NewPCG(seed, 1)),
		pods: make(map[string]*plantPod), jobs: make(map[pool.LeaseID]job),
	}
}

// run runs the plant for a time.
func (p *plant) run(length time.Duration) result {
	p.every(time.Second, func() { p.tell(pool.Tick{}) })
	for end := start.Add(length); p.agenda[0].at.Before(end); {
		next := heap.Pop(&p.agenda).(task)
		p.now = next.at
		next.do()
	}
	for _, pod := range p.pods {
		p.podTime += p.now.Sub(pod.created)
	}
	return p.result
}

// request sends the next request, and those after it: a Poisson process of a rate that changes.
func (p *plant) request(l load, service time.Duration) {
	pause := time.Duration(p.draws.ExpFloat64() / l.most * float64(time.Second))
	takes := p.draw(service)
	asks := p.draws.Float64()*l.most < l.rate(p.now.Sub(start))
	p.after(pause, func() {
		if asks {
			p.ask(takes)
		}
		p.request(l, service)
	})
}

// draw returns a service time: half of it is the same for all, half is random.
func (p *plant) draw(service time.Duration) time.Duration {
	return service/2 + time.Duration(p.draws.ExpFloat64()*float64(service/2))
}

// ask sends a request that takes a time.
func (p *plant) ask(service time.Duration) {
	p.requests++
	id := pool.LeaseID(p.requests)
	p.jobs[id] = job{asked: p.now, service: service}
	p.tell(pool.LeaseRequested{Lease: id, Function: function("f")})
}

// tell has the machine handle an event, and does what it asks for.
func (p *plant) tell(event pool.Event) {
	for _, action := range p.machine.Handle(p.now, event) {
		switch a := action.(type) {
		case pool.Create:
			p.create(a)
		case pool.Probe:
			p.after(0, func() { p.tell(pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question}) })
		case pool.Delete:
			p.podTime += p.now.Sub(p.pods[a.Name].created)
			delete(p.pods, a.Name)
			p.after(time.Second, func() { p.tell(pool.PodGone{Name: a.Name, UID: a.UID}) })
		case pool.Grant:
			pod := p.pods[a.Pod]
			pod.queue = append(pod.queue, a.Lease)
			p.work(pod)
		case pool.Reject:
			panic(fmt.Sprintf("nothing is wrong, and a lease is rejected: %+v", a))
		}
	}
}

// create starts a pod.
func (p *plant) create(a pool.Create) {
	p.creations++
	p.pods[a.Name] = &plantPod{created: p.now}
	p.after(podStart, func() {
		pod := observed(a.Name, a.Function, a.Slot, p.now)
		pod.ReclaimAfter = a.ReclaimAfter
		p.tell(pod)
	})
}

// work begins evaluations as far as the pod has slots.
func (p *plant) work(pod *plantPod) {
	for pod.running < podSlots && len(pod.queue) > 0 {
		id := pod.queue[0]
		pod.queue = pod.queue[1:]
		pod.running++
		j := p.jobs[id]
		delete(p.jobs, id)
		if waited := p.now.Sub(j.asked); waited > 0 {
			p.waits++
			p.waited += waited
		}
		p.after(j.service, func() {
			pod.running--
			p.tell(pool.LeaseEnded{Lease: id})
			p.work(pod)
			if p.answered != nil {
				p.answered()
			}
		})
	}
}

func (p *plant) after(d time.Duration, do func()) {
	p.order++
	heap.Push(&p.agenda, task{at: p.now.Add(d), order: p.order, do: do})
}

func (p *plant) every(d time.Duration, do func()) {
	p.after(d, func() {
		do()
		p.every(d, do)
	})
}
