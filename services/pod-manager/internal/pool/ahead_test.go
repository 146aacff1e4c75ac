// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// calls is a part of a dialogue: requests of f, together at the same time each two seconds, that each hold their pod
// for a second.
func calls(from, n, together int, answers map[int]string) string {
	var b strings.Builder
	for i := from; i < from+n; i += together {
		b.WriteString("wait 1s\n")
		for j := i; j < i+together; j++ {
			b.WriteString("request " + strconv.Itoa(j) + " f" + answers[j] + "\n")
		}
		b.WriteString("wait 1s\n")
		for j := i; j < i+together; j++ {
			b.WriteString("end " + strconv.Itoa(j) + "\n")
		}
	}
	return b.String()
}

// TestCallersOneAfterTheOtherGetFewPods has callers that each call again as soon as they have an answer: there are
// never more evaluations at a time than callers. One pod is meant for two of them.
func TestCallersOneAfterTheOtherGetFewPods(t *testing.T) {
	t.Parallel()
	_, config := rules()
	for _, service := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
		for _, callers := range []int{1, 2, 4, 8} {
			got := serveCallers(1, callers, service, 5*time.Minute, config)
			if got.creations > callers {
				t.Errorf("%d callers of evaluations of %s have %d pods", callers, service, got.creations)
			}
		}
	}
}

func TestScaleAhead(t *testing.T) {
	t.Parallel()
	ahead := func(p *player) {
		p.config.ScaleAhead = true
		p.limits.MaxPods, p.limits.MaxWaitlistLength = 3, 2
	}
	grants := func(from, n int, pod string) map[int]string {
		answers := make(map[int]string)
		for i := range n {
			answers[from+i] = " => grant " + strconv.Itoa(from+i) + " " + pod
		}
		return answers
	}
	started := `
		request 1 f => create f-1 for leases
		up f-1 => grant 1 f-1 cold
	`
	second := func(at int, answer string) map[int]string {
		all := grants(2, 16, "f-1")
		all[at] += answer
		return all
	}
	play(t, []behaviour{
		{
			name:   "before evaluations wait",
			reason: "never more than two evaluations at a time for now, and there may be more",
			config: ahead, causes: true,
			dialogue: started + "wait 1s\nend 1\n" + calls(2, 16, 2, second(15, "; create f-2 for forecast")),
		},
		{
			name: "off", reason: "the pod is not full", causes: true,
			config:   func(p *player) { ahead(p); p.config.ScaleAhead = false },
			dialogue: started + "wait 1s\nend 1\n" + calls(2, 16, 2, grants(2, 16, "f-1")),
		},
		{
			name: "one caller", reason: "it calls again when it has an answer: there are never two evaluations", causes: true,
			config:   ahead,
			dialogue: started + "wait 1s\nend 1\n" + calls(2, 16, 1, grants(2, 16, "f-1")),
		},
		{
			name: "a single slow request", reason: "it gives no rate, however long it takes", causes: true,
			config:   ahead,
			dialogue: started + "wait 50s\nend 1\nwait 1s\nrequest 2 f => grant 2 f-1\nwait 1s\nend 2",
		},
		{
			name: "the limit of the function", reason: "a forecast is no reason for more", causes: true,
			config:   func(p *player) { ahead(p); p.limits.MaxPods = 1 },
			dialogue: started + "wait 1s\nend 1\n" + calls(2, 16, 2, grants(2, 16, "f-1")),
		},
		{
			name: "the limit of all", reason: "an eighth of all pods is left to functions that have none", causes: true,
			config:   func(p *player) { ahead(p); p.config.MaxPods = 1 },
			dialogue: started + "wait 1s\nend 1\n" + calls(2, 16, 2, grants(2, 16, "f-1")),
		},
	})
}
