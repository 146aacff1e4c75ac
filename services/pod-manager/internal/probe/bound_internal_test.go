// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// pods answers probes in virtual time: those whose address begins with "silent" never.
type pods struct {
	takes time.Duration

	mu       sync.Mutex
	now, top int // asked at a time
	answered map[string]time.Time
	// unanswered counts reports of questions without an answer.
	unanswered int
}

func (s *pods) ask(ctx context.Context, pod pool.Probe) error {
	s.mu.Lock()
	s.now++
	s.top = max(s.top, s.now)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	if strings.HasPrefix(pod.Address, "silent") {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startProber runs a prober of these pods.
func startProber(t *testing.T, s *pods) *Prober {
	t.Helper()
	s.answered = make(map[string]time.Time)
	p := New(nil, func(e pool.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if probed, ok := e.(pool.Probed); ok {
			s.answered[probed.Name] = time.Now()
		} else {
			s.unanswered++
		}
	})
	p.ask = s.ask
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return p
}

func TestProbesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pods{takes: 10 * time.Millisecond}
		p := startProber(t, s)
		begin := time.Now()
		for i := range 10_000 {
			p.Probe(pool.Probe{Name: strconv.Itoa(i), UID: "u", Address: "pod"})
		}
		for s.count() < 10_000 {
			<-time.After(10 * time.Millisecond)
		}
		synctest.Wait()
		if s.top != parallel {
			t.Errorf("%d pods are asked at a time, want %d", s.top, parallel)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("10,000 pods that answer in 10 ms take %s", took)
		}
	})
}

// count is the number of pods that answered.
func (s *pods) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answered)
}

// TestSilentPodsDoNotDelayOthers has thousands of pods that never answer, as those of a node
// that is lost.
func TestSilentPodsDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pods{takes: time.Millisecond}
		p := startProber(t, s)
		for i := range 4000 {
			p.Probe(pool.Probe{Name: "silent" + strconv.Itoa(i), UID: "u", Address: "silent"})
		}
		<-time.After(time.Minute)
		begin := time.Now()
		p.Probe(pool.Probe{Name: "pod", UID: "u", Address: "pod"})
		<-time.After(turn + 10*time.Millisecond)
		synctest.Wait()
		if at, ok := s.answered["pod"]; !ok || at.Sub(begin) > turn+2*time.Millisecond {
			t.Errorf("a pod that answers at once got its turn at %v of %v", at, begin)
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if s.unanswered != 4000 {
			t.Errorf("4000 silent pods are reported %d times", s.unanswered)
		}
	})
}

// TestTimeoutBeginsWithTheFirstTurn has a check wait in the queue for longer than its timeout.
func TestTimeoutBeginsWithTheFirstTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []pool.Probed
		s := &pods{takes: 2 * time.Second}
		p := startProber(t, s)
		p.report = func(e pool.Event) {
			if probed, ok := e.(pool.Probed); ok && probed.Name == "pod" {
				got = append(got, probed)
			}
		}
		for i := range 4 * parallel {
			p.Probe(pool.Probe{Name: strconv.Itoa(i), UID: "u", Address: "pod"})
		}
		p.Probe(pool.Probe{Name: "pod", UID: "u", Address: "pod", Timeout: 3 * time.Second})
		<-time.After(30 * time.Second)
		if len(got) != 1 || got[0].Unhealthy != "" {
			t.Errorf("reported %+v, want that it serves", got)
		}
	})
}

// TestEndedProbesAreForgotten has pods come and go behind silent ones.
func TestEndedProbesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startProber(t, &pods{})
		for i := range parallel {
			p.Probe(pool.Probe{Name: "silent" + strconv.Itoa(i), UID: "u", Address: "silent"})
		}
		synctest.Wait()
		for range 10_000 {
			p.Probe(pool.Probe{Name: "silent", UID: "u", Address: "silent"})
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.queue.fresh) + len(p.queue.tried); n > 2*parallel {
			t.Errorf("%d probes are in the queue, of %d pods", n, len(p.current))
		}
	})
}
