// SPDX-License-Identifier: Apache-2.0

package resolverclient

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// service answers with the number of the question, unless it is away or hangs.
type service struct {
	*lastAnswers[string, int]
	asked int
	err   error
	hangs bool
	stale int
}

func (s *service) answer(ctx context.Context, _ string) (int, error) {
	s.asked++
	if s.hangs {
		<-ctx.Done()
		return 0, fault.New(fault.Of(ctx.Err()), "wait: %w", ctx.Err())
	}
	return s.asked, s.err
}

// runLast runs a test in virtual time, with one answer for the key "k".
func runLast(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		counter, err := noop.NewMeterProvider().Meter("").Int64Counter("stale")
		if err != nil {
			t.Fatal(err)
		}
		size := func(string, int) int64 { return maxBytes / 100 }
		s.lastAnswers = newLastAnswers(s.answer, func(context.Context) bool { return false }, size, counter, "test")
		s.countStale = func(context.Context) { s.stale++ }
		s.expect(t, t.Context(), 1)
		test(t, s)
	})
}

// expect checks the answer for the key "k".
func (s *service) expect(t *testing.T, ctx context.Context, want int) {
	t.Helper()
	if got, err := s.get(ctx, "k"); err != nil || got != want {
		t.Errorf("got %v, %v, want %d", got, err, want)
	}
}

func TestServiceIsAskedEachTime(t *testing.T) {
	runLast(t, func(t *testing.T, s *service) {
		s.expect(t, t.Context(), 2)
		if known := s.known("k"); known == nil || known.value != 2 || s.stale != 0 {
			t.Errorf("%v is known, and %d answers were stale", known, s.stale)
		}
	})
}

func TestLastAnswersWhileTheServiceIsAway(t *testing.T) {
	runLast(t, func(t *testing.T, s *service) {
		s.err = fault.New(fault.Unavailable, "away")
		for range 600 {
			s.expect(t, t.Context(), 1)
			<-time.After(time.Second)
		}
		if s.asked > 130 || s.stale != 600 {
			t.Errorf("%d questions and %d stale answers in 10 minutes", s.asked, s.stale)
		}
		if _, err := s.get(t.Context(), "new"); fault.Of(err) != fault.Unavailable {
			t.Errorf("a key without an answer: %v", err)
		}
		s.err = nil
		<-time.After(6 * time.Second)
		s.expect(t, t.Context(), s.asked+1)
		s.err = fault.New(fault.Unavailable, "away")
		<-time.After(2 * time.Hour)
		if _, err := s.get(t.Context(), "k"); fault.Of(err) != fault.Unavailable {
			t.Errorf("after two hours: %v, want that nothing is known", err)
		}
	})
}

// TestUnavailableRegistryDelaysNoOtherKey checks that the client does not take the service to be unavailable when the
// service reports a single registry as unavailable.
func TestUnavailableRegistryDelaysNoOtherKey(t *testing.T) {
	runLast(t, func(t *testing.T, s *service) {
		asked := 0
		s.ask = func(_ context.Context, key string) (int, error) {
			if key == "k" {
				return 0, fault.New(fault.Unavailable, "registry: connection refused")
			}
			asked++
			return asked, nil
		}
		for i := range 6000 {
			s.expect(t, t.Context(), 1)
			if i%300 == 0 {
				if got, err := s.get(t.Context(), "other"); err != nil || got != i/300+1 {
					t.Errorf("got %d, %v after %d questions about the other registry", got, err, i/300)
				}
			}
			<-time.After(100 * time.Millisecond)
		}
	})
}

// TestFailedKeysAnswerWithoutDelay checks that the client, while a key waits for its next query, does not look up
// whether the service hangs, because that may wait for name servers.
func TestFailedKeysAnswerWithoutDelay(t *testing.T) {
	runLast(t, func(t *testing.T, s *service) {
		s.err = fault.New(fault.Unavailable, "away")
		s.expect(t, t.Context(), 1)
		s.lastAnswers.hangs = func(context.Context) bool {
			t.Error("the call waits for name servers")
			return false
		}
		s.expect(t, t.Context(), 1)
	})
}

// TestAnswersOfTheServiceAreFinal, also if they are errors.
func TestAnswersOfTheServiceAreFinal(t *testing.T) {
	runLast(t, func(t *testing.T, s *service) {
		s.err = fault.New(fault.Precondition, "the tag was deleted")
		if _, err := s.get(t.Context(), "k"); fault.Of(err) != fault.Precondition {
			t.Errorf("error %v", err)
		}
	})
}

// TestCallersWithLittleTimeGetLastAnswers while the service hangs.
func TestCallersWithLittleTimeGetLastAnswers(t *testing.T) {
	for left, most := range map[time.Duration]time.Duration{
		time.Second: 500 * time.Millisecond, 4 * time.Second: 2 * time.Second, time.Minute: 3 * time.Second,
	} {
		runLast(t, func(t *testing.T, s *service) {
			s.hangs = true
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			begin := time.Now()
			s.expect(t, ctx, 1)
			if took := time.Since(begin); took != most {
				t.Errorf("a caller with %s waited %s, want %s", left, took, most)
			}
			s.expect(t, ctx, 1)
			if took := time.Since(begin); took != most {
				t.Errorf("the next caller waited until %s", took)
			}
		})
	}
}

func TestLastAnswersAreBounded(t *testing.T) {
	runLast(t, func(t *testing.T, s *service) {
		known := 0
		for i := range 1000 {
			if _, err := s.get(t.Context(), strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1000 {
			if s.known(strconv.Itoa(i)) != nil {
				known++
			}
		}
		if s.known("999") == nil || known < 90 || known > 102 {
			t.Errorf("%d answers of a hundredth of the limit are known, want about 100, with the last one", known)
		}
	})
}
