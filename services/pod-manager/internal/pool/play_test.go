// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// behaviour is a dialogue with a machine, one line for each event:
//
//	EVENT                  what happens, see [player.event]
//	EVENT => ACTION; …     and what the machine answers, see [player.action]
//
// A line that ends in => or a semicolon goes on in the next one. Two lines are short for those with which most
// dialogues begin, see [shorthands]:
//
//	cold LEASE POD         a lease is requested, for which the pod is created
//	idle LEASE POD         the same, and the lease ends
//
// Reports are left out unless the test is about them. Pods are called f-1 for the
// first one of function f in slot 1, and f-1' for its successor, whose name was
// chosen knowing the first one's UID.
type behaviour struct {
	name     string
	reason   string
	config   func(*player)
	reports  bool
	causes   bool // the dialogue has why pods are created
	dialogue string
}

// player speaks the part of the world in a dialogue.
type player struct {
	limits  pool.Limits
	config  pool.Config
	reports bool
	causes  bool
	now     time.Time
	referee *referee
	pods    map[string]pool.Observation
	asked   map[string][]uint64  // the questions for pods' health
	planned map[string]time.Time // when pods may be collected, as their creator wrote
}

// continued are the places where a line of a dialogue goes on in the next one.
var continued = regexp.MustCompile(`(=>|;)\n\s*`)

// shorthands are the lines that are short for others.
var shorthands = []struct {
	line *regexp.Regexp
	long string
}{
	{regexp.MustCompile(`(?m)^\s*idle (\d+) (\S+)$`), "cold $1 $2\nend $1"},
	{
		regexp.MustCompile(`(?m)^\s*cold (\d+) ((\w+)-\S+)$`),
		"request $1 $3 => create $2\nup $2 => grant $1 $2 cold",
	},
}

func play(t *testing.T, tests []behaviour) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlayer(test)
			var want, got []string
			dialogue := continued.ReplaceAllString(test.dialogue, "$1 ")
			for _, short := range shorthands {
				dialogue = short.line.ReplaceAllString(dialogue, short.long)
			}
			for line := range strings.Lines(dialogue) {
				event, actions, answered := strings.Cut(strings.TrimSpace(line), "=>")
				event = strings.TrimSpace(event)
				if event == "" {
					continue
				}
				want = append(want, event)
				got = append(got, event)
				if answered {
					for action := range strings.SplitSeq(actions, ";") {
						want = append(want, "  => "+strings.TrimSpace(action))
					}
				}
				actions_, err := p.play(event)
				for _, action := range actions_ {
					got = append(got, "  => "+action)
				}
				if err != nil {
					t.Fatalf("%q: %v\nso far:\n%s", event, err, strings.Join(got, "\n"))
				}
			}
			if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// newPlayer returns a player with limits that a test may change: one pod, that two may
// use at a time.
func newPlayer(test behaviour) *player {
	p := &player{
		limits: pool.Limits{
			MaxPods: 1, MaxWaitlistLength: 2, MaxConcurrency: 2, MaxQueue: 10,
			TTL: 10 * time.Minute, ReadyTimeout: 5 * time.Minute,
		},
		now:     start,
		reports: test.reports,
		causes:  test.causes,
		pods:    make(map[string]pool.Observation),
		planned: make(map[string]time.Time),
		asked:   make(map[string][]uint64),
	}
	p.config = pool.Config{
		ScanInterval: time.Minute, SchedulingTimeout: 10 * time.Second,
		Template: "v1", PodName: playName, PodID: playID,
	}
	if test.config != nil {
		test.config(p)
	}
	p.referee = newReferee(p.configured())
	return p
}

// twoPods has a second pod when more than one lease waits.
func twoPods(p *player) {
	p.limits.MaxPods = 2
	p.limits.MaxWaitlistLength = 1
}

// configured returns the configuration as it is now.
func (p *player) configured() pool.Config {
	config, limits := p.config, p.limits
	config.Limits = func(pool.Function) pool.Limits { return limits }
	return config
}

// playID is an id without the repository, as that of real pods.
func playID(f pool.Function, slot int) string {
	return fmt.Sprintf("%s-%d", path.Base(f.Reference), slot)
}

func playName(f pool.Function, slot int, predecessor string) string {
	name := fmt.Sprintf("%s-%d", f.Reference, slot)
	if predecessor == "" {
		return name
	}
	return name + "'" + strings.Repeat("'", strings.Count(predecessor, "'"))
}

// answer is what a pod says of its health, when it was asked last or by an earlier
// question.
func (p *player) answer(pod, unhealthy string, earlier ...uint64) pool.Event {
	e := pool.Probed{Name: pod, UID: p.pods[pod].UID, Unhealthy: unhealthy}
	for _, question := range append(p.asked[pod], earlier...) {
		e.Question = question
	}
	return e
}

// play plays one line's event.
func (p *player) play(line string) ([]string, error) {
	words := strings.Fields(line)
	switch verb, rest := words[0], words[1:]; verb {
	case "after": // time passes, without a tick
		p.now = p.now.Add(duration(rest[0]))
		return nil, nil
	case "wait": // time passes, with a tick each second
		var actions []string
		for end := p.now.Add(duration(rest[0])); p.now.Before(end); {
			p.now = p.now.Add(time.Second)
			more, err := p.tell(pool.Tick{})
			if actions = append(actions, more...); err != nil {
				return actions, err
			}
		}
		return actions, nil
	case "up": // a pod that was created gets ready at once
		actions, err := p.tell(p.observe(rest[0], "running"))
		if err != nil {
			return actions, err
		}
		more, err := p.tell(p.answer(rest[0], ""))
		return append(without(actions, "probe"), more...), err
	default:
		return p.tell(p.event(verb, rest))
	}
}

func without(actions []string, verb string) []string {
	var left []string
	for _, a := range actions {
		if !strings.HasPrefix(a, verb+" ") {
			left = append(left, a)
		}
	}
	return left
}

// tell tells the machine an event, and returns what it answers.
func (p *player) tell(event pool.Event) ([]string, error) {
	answers, err := p.referee.handle(p.now, event)
	var actions []string
	for _, answer := range answers {
		if _, report := answer.(pool.Report); report && !p.reports {
			continue
		}
		if c, create := answer.(pool.Create); create {
			p.planned[c.Name] = c.ReclaimAfter
		}
		if probe, ok := answer.(pool.Probe); ok {
			p.asked[probe.Name] = append(p.asked[probe.Name], probe.Question)
		}
		actions = append(actions, p.action(answer))
	}
	return actions, err
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}
