// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/policy"
)

// retryAfter is the retry hint when all evaluations that a rule allows are running.
const retryAfter = time.Second

// limits are what the rules of a policy have running. They outlive changes of the file.
type limits struct {
	mu    sync.Mutex
	rules map[string]*limited
}

// limited is what a rule has running.
type limited struct {
	running int
	rate    *rate.Limiter
}

// admit begins an evaluation that a rule allows, unless it exceeds the rule's limits. The caller calls
// release at its end.
func (l *limits) admit(d policy.Decision) (release func(), err error) {
	if d.Limits.Concurrency == 0 && d.Limits.Rate == 0 {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.rules[d.Rule]
	if state == nil {
		state = &limited{}
		l.rules[d.Rule] = state
	}
	if most := d.Limits.Concurrency; most > 0 && state.running >= most {
		return nil, fault.WithRetryAfter(fault.New(fault.Exhausted,
			"the rule %q of the policy allows %d evaluations at a time on each gateway, which are running: try again later",
			d.Rule, most), retryAfter)
	}
	if wait := state.wait(d.Limits.Rate); wait > 0 {
		return nil, fault.WithRetryAfter(fault.New(fault.Exhausted,
			"the rule %q of the policy allows %v evaluations in a second on each gateway: try again later",
			d.Rule, d.Limits.Rate), wait)
	}
	state.running++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		state.running--
	}, nil
}

// wait takes one evaluation from the rate, or returns how long it takes until there is one.
func (s *limited) wait(perSecond float64) time.Duration {
	if perSecond == 0 {
		return 0
	}
	burst := int(math.Ceil(perSecond))
	if s.rate == nil {
		s.rate = rate.NewLimiter(rate.Limit(perSecond), burst)
	}
	if s.rate.Limit() != rate.Limit(perSecond) {
		s.rate.SetLimit(rate.Limit(perSecond))
		s.rate.SetBurst(burst)
	}
	if s.rate.Allow() {
		return 0
	}
	missing := 1 - s.rate.Tokens()
	return max(time.Duration(missing/perSecond*float64(time.Second)), time.Millisecond)
}

// keep removes the state of rules that no longer exist.
func (l *limits) keep(rules []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sorted := slices.Sorted(slices.Values(rules))
	for name := range l.rules {
		if _, found := slices.BinarySearch(sorted, name); !found {
			delete(l.rules, name)
		}
	}
}
