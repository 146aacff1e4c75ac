// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// event understands what happens:
//
//	request LEASE FUNCTION [AVOID,…]     end LEASE [what was broken], or abandon LEASE
//	see POD STATE [KEY=VALUE …]          gone POD
//	foreign POD ID
//	healthy POD, or late POD              unhealthy POD
//	createfailed POD KIND words          deletefailed POD
//	minimum FUNCTION PODS
//	set KEY=VALUE …                      tick
func (p *player) event(verb string, words []string) pool.Event {
	rest := ""
	if len(words) > 1 {
		rest = strings.Join(words[1:], " ")
	}
	switch verb {
	case "request":
		e := pool.LeaseRequested{Lease: lease(words[0]), Function: function(words[1])}
		if len(words) > 2 {
			e.Avoid = strings.Split(words[2], ",")
		}
		return e
	case "end":
		return pool.LeaseEnded{Lease: lease(words[0]), Broken: rest}
	case "abandon":
		return pool.LeaseEnded{Lease: lease(words[0]), Abandoned: true}
	case "see":
		return p.observe(words[0], words[1], words[2:]...)
	case "foreign":
		return pool.ForeignObserved{Name: words[0], ID: words[1]}
	case "gone":
		return pool.PodGone{Name: words[0], UID: p.pods[words[0]].UID}
	case "healthy":
		return p.answer(words[0], "")
	case "late": // an answer to the question before the last one
		return p.answer(words[0], "", p.asked[words[0]][len(p.asked[words[0]])-2])
	case "unhealthy":
		return p.answer(words[0], "connection refused")
	case "createfailed":
		problem := pool.Problem{Kind: kinds[words[1]], Reason: strings.Join(words[2:], " ")}
		return pool.CreateFailed{Name: words[0], Problem: problem}
	case "deletefailed":
		return pool.DeleteFailed{Name: words[0], UID: p.pods[words[0]].UID}
	case "minimum":
		return pool.MinPodsSet{Function: function(words[0]), Pods: number(words[1])}
	case "set":
		p.set(words)
		return pool.Configured{Config: p.configured()}
	case "tick":
		return pool.Tick{}
	}
	panic("no such event: " + verb)
}

func lease(text string) pool.LeaseID { return pool.LeaseID(number(text)) }

func function(name string) pool.Function { return pool.Function{Reference: name, Digest: "sha256:0"} }

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

var kinds = map[string]pool.ProblemKind{
	"none": pool.None, "stuck": pool.Stuck, "held": pool.Held,
	"lost": pool.Lost, "starved": pool.Lost, "fatal": pool.Fatal, "full": pool.Full,
}

// phases are the states of a pod in words, with those in which it has a problem.
var phases = map[string]pool.Phase{
	"scheduling": pool.PhaseScheduling, "pulling": pool.PhasePulling,
	"starting": pool.PhaseStarting, "running": pool.PhaseConnecting,
	"stuck": pool.PhaseScheduling, "held": pool.PhaseScheduling,
	"lost": pool.PhaseConnecting, "starved": pool.PhaseConnecting,
	"fatal": pool.PhasePulling,
}

// observe changes a pod, a new one if it is not known, and returns how it looks then.
// Pods that the machine did not create say that they may be collected a time to live
// after they were seen first.
func (p *player) observe(name, state string, changes ...string) pool.PodObserved {
	o, known := p.pods[name]
	if !known {
		f, slot, _ := strings.Cut(strings.TrimRight(name, "'"), "-")
		o = pool.Observation{
			Name: name, UID: "uid of " + name, Function: function(f), Slot: number(slot),
			TemplateVersion: p.config.Template, SettingsVersion: p.limits.Settings,
			Created: p.now, ReclaimAfter: p.now.Add(p.limits.TTL),
		}
		if planned, ok := p.planned[name]; ok {
			o.ReclaimAfter = planned
		}
	}
	o.ResourceVersion = strconv.Itoa(number("0"+o.ResourceVersion) + 1)
	o.Phase = phases[state]
	o.Address = ""
	o.Problem = pool.Problem{}
	if state == "running" {
		o.Address = name + ":9446"
	}
	if kind := kinds[state]; kind != pool.None {
		o.Problem = pool.Problem{Kind: kind, Reason: "the kubelet says " + state, OutOfMemory: state == "starved"}
	}
	for _, change := range changes {
		key, value, _ := strings.Cut(change, "=")
		switch key {
		case "deleting":
			o.Deleting = true
		case "ready":
			o.Ready = true
		case "template":
			o.TemplateVersion = value
		case "settings":
			o.SettingsVersion = value
		case "reclaim":
			o.ReclaimAfter = instant(value)
		case "created":
			o.Created = instant(value)
		case "slot":
			o.Slot = number(value)
		case "version":
			o.ResourceVersion = value
		case "uid":
			o.UID = value
		case "address":
			o.Address = value
		case "health":
			o.HealthAddress = value
		default:
			panic("a pod has no " + key)
		}
	}
	p.pods[name] = o
	return pool.PodObserved{Observation: o}
}

// phase is a phase in a word.
func phase(p pool.Phase) string { return strings.ToLower(strings.TrimPrefix(p.String(), "PHASE_")) }

// instant is a time after the start, or none.
func instant(text string) time.Time {
	if text == "none" {
		return time.Time{}
	}
	return start.Add(duration(text))
}

// set changes settings.
func (p *player) set(changes []string) {
	for _, change := range changes {
		key, value, _ := strings.Cut(change, "=")
		switch key {
		case "pods":
			p.limits.MaxPods = number(value)
		case "concurrency":
			p.limits.MaxConcurrency = number(value)
		case "waitlist":
			p.limits.MaxWaitlistLength = number(value)
		case "template":
			p.config.Template = value
		case "settings":
			p.limits.Settings = value
		default:
			panic("there is no setting " + key)
		}
	}
}

// action returns in words what the machine does.
func (p *player) action(action pool.Action) string {
	since := func(t time.Time) time.Duration { return t.Sub(start) }
	switch a := action.(type) {
	case pool.Grant:
		if a.Cold {
			return fmt.Sprintf("grant %d %s cold", a.Lease, a.Pod)
		}
		return fmt.Sprintf("grant %d %s", a.Lease, a.Pod)
	case pool.Reject:
		text := fmt.Sprintf("reject %d %s", a.Lease, a.Class)
		if a.RetryAfter > 0 {
			text += fmt.Sprintf(" retry in %s", a.RetryAfter)
		}
		return text + ": " + a.Reason
	case pool.Report:
		w := a.Waiting
		return strings.TrimRight(fmt.Sprintf("tell %d %s no. %d: %s", a.Lease, phase(w.Phase), w.Position, w.Reason), " ")
	case pool.Create:
		if p.causes {
			return fmt.Sprintf("create %s for %s", a.Name, a.Reason)
		}
		return "create " + a.Name
	case pool.Delete:
		return strings.TrimRight(fmt.Sprintf("delete %s %s", a.Name, a.Eviction), " ")
	case pool.Extend:
		return fmt.Sprintf("extend %s to %s", a.Name, since(a.ReclaimAfter))
	case pool.Probe:
		text := "probe " + a.Name
		if want := p.pods[a.Name].Address; a.Address != want {
			text += " at " + a.Address
		}
		if a.Timeout > 0 {
			text += fmt.Sprintf(" for %s", a.Timeout)
		}
		return text
	}
	panic("no such action")
}
