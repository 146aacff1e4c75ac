// SPDX-License-Identifier: Apache-2.0

package binaries_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/binaries"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []binaries.Problems
		board := binaries.NewBoard(func(p binaries.Problems) { reported = append(reported, p) })
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- board.Watch(ctx, func(list []binaries.Binary) binaries.Problems {
				names := make([]string, 0, len(list))
				for _, b := range list {
					names = append(names, b.Config)
				}
				got = append(got, strings.Join(names, " "))
				if len(list) == 0 {
					return nil
				}
				return binaries.Problems{list[0].Config: "missing"}
			})
		}()
		synctest.Wait()
		one, two := 1, 1
		for _, list := range [][]binaries.Binary{
			nil,
			{},
			{{Config: "a", Prefork: &one}},
			{{Config: "a", Prefork: &two}},
			{{Config: "a"}},
			{{Config: "a"}, {Config: "b"}},
		} {
			board.Put(list)
			synctest.Wait()
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v", err)
		}
		if diff := cmp.Diff([]string{"", "a", "a", "a b"}, got); diff != "" {
			t.Errorf("lists (-want, +got):\n%s", diff)
		}
		if len(reported) != 4 || reported[0]["a"] != "missing" || reported[3] != nil {
			t.Errorf("reported are %v, want the problems of three lists, and nothing when the watch has ended", reported)
		}
	})
}

// TestProblemsOfAllWatches has two watches with different problems, of which one ends.
func TestProblemsOfAllWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported binaries.Problems
		board := binaries.NewBoard(func(p binaries.Problems) { reported = p })
		board.Put(nil)
		watch := func(problems binaries.Problems) (leave func()) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _ = board.Watch(ctx, func([]binaries.Binary) binaries.Problems { return problems }) }()
			synctest.Wait()
			return func() { cancel(); synctest.Wait() }
		}
		expect := func(want binaries.Problems) {
			t.Helper()
			if diff := cmp.Diff(want, reported); diff != "" {
				t.Errorf("problems (-want, +got):\n%s", diff)
			}
		}
		leaveNothing := watch(nil)
		expect(nil)
		leaveA := watch(binaries.Problems{"a": "missing"})
		leaveB := watch(binaries.Problems{"b": "missing"})
		leaveNone := watch(binaries.Problems{})
		expect(binaries.Problems{"a": "missing", "b": "missing"})
		leaveA()
		expect(binaries.Problems{"b": "missing"})
		leaveB()
		expect(binaries.Problems{})
		leaveNone()
		leaveNothing()
		expect(nil)
	})
}

// source is a Source that a test scripts: each watch has one of its functions.
type source []func(use func([]binaries.Binary) binaries.Problems) error

func (s *source) Watch(ctx context.Context, use func([]binaries.Binary) binaries.Problems) error {
	if len(*s) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	next := (*s)[0]
	*s = (*s)[1:]
	return next(use)
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lost")
		fails := func(func([]binaries.Binary) binaries.Problems) error { return lost }
		works := func(use func([]binaries.Binary) binaries.Problems) error { use(nil); return lost }
		s := &source{works, fails, fails, fails, works}
		var logs bytes.Buffer
		lists := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		log := slog.New(slog.NewTextHandler(&logs, nil))
		binaries.Follow(ctx, s, log, func([]binaries.Binary) binaries.Problems { lists++; return nil })
		if lists != 2 || len(*s) != 0 {
			t.Errorf("there were %d lists, want 2", lists)
		}
		text := logs.String()
		if strings.Count(text, "using the last ones") != 2 || strings.Count(text, "received again") != 1 {
			t.Errorf("the loss is not logged once each time:\n%s", &logs)
		}
	})
}
