package images_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/images"
)

// unavailable is how a resolver sounds that cannot be reached.
var unavailable = fault.New(fault.Unavailable, "connection refused")

// known returns a memory that knows "fn:v1" as it was a while ago. It runs until the
// test ends.
func known(t *testing.T, r *resolver, age time.Duration) *images.Memory {
	t.Helper()
	memory := images.New(r)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- memory.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if _, err := memory.ResolveImage(t.Context(), "fn:v1", ""); err != nil {
		t.Fatal(err)
	}
	<-time.After(age)
	return memory
}

// lease asks as a lease does, and says how long that took.
func lease(t *testing.T, memory *images.Memory) (digest string, took time.Duration, err error) {
	t.Helper()
	begin := time.Now()
	image, ok := memory.Recall("fn:v1", "")
	if !ok {
		image, err = memory.ResolveImage(t.Context(), "fn:v1", "")
	}
	return image.GetDigest(), time.Since(begin), err
}

func TestNoLeaseWaitsForAnAbsentResolver(t *testing.T) {
	tests := map[string]struct {
		reason string
		age    time.Duration // of what is known when the resolver goes
		takes  time.Duration // until a question has failed
		waits  int           // how many leases wait for that
		asked  int           // in the 100 seconds after
	}{
		"refused":          {"asked every 10 s, while nobody waits", 10 * time.Second, 1550 * time.Millisecond, 0, 9},
		"packets vanish":   {"nor does a slower failure hold up anybody", 10 * time.Second, 2 * time.Second, 0, 9},
		"silent":           {"one question at a time, until it has no more time", 10 * time.Second, time.Hour, 0, 3},
		"not used of late": {"the tag may have moved: the first waits to hear of it", 10 * time.Minute, 1550 * time.Millisecond, 1, 9},
		"not used, silent": {"but not for long", 10 * time.Minute, time.Hour, 1, 3},
		"fails at once":    {"that is no reason to ask more often", 10 * time.Second, 0, 0, 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := new(resolver)
				memory := known(t, r, tc.age)
				r.takes, r.err, r.asked = tc.takes, unavailable, 0
				waited := 0
				for range 100 {
					digest, took, err := lease(t, memory)
					if digest != "1" || err != nil {
						t.Fatalf("digest %q, %v, want what is known: %s", digest, err, tc.reason)
					}
					if took > 0 {
						waited++
					}
					if took > 3*time.Second {
						t.Errorf("waited for %v: %s", took, tc.reason)
					}
					<-time.After(time.Second)
				}
				synctest.Wait()
				if waited != tc.waits || r.asked != tc.asked {
					t.Errorf("%d of 100 waited, and the resolver was asked %d times, want %d and %d: %s", waited, r.asked, tc.waits, tc.asked, tc.reason)
				}
			})
		})
	}
}

func TestMovedTagIsNoticed(t *testing.T) {
	tests := map[string]struct {
		reason string
		age    time.Duration
		first  string // what the first lease gets
	}{
		"fresh":       {"nobody is asked", 9 * time.Second, "1"},
		"in use":      {"the first has it asked for, the next have it", 11 * time.Second, "1"},
		"not in use":  {"the first waits for it", 61 * time.Second, "2"},
		"long unused": {"the first waits for it", 2 * time.Hour, "2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := known(t, &resolver{takes: time.Second}, tc.age)
				if digest, _, err := lease(t, memory); digest != tc.first || err != nil {
					t.Errorf("digest %q, %v, want %q: %s", digest, err, tc.first, tc.reason)
				}
				<-time.After(2 * time.Second)
				if digest, _, err := lease(t, memory); tc.age > 9*time.Second && (digest != "2" || err != nil) {
					t.Errorf("digest %q, %v two seconds later, want the new one", digest, err)
				}
			})
		})
	}
}

func TestResolverComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(resolver)
		memory := known(t, r, 10*time.Second)
		r.err = unavailable
		_, _, _ = lease(t, memory)
		synctest.Wait()
		<-time.After(40 * time.Minute)
		r.err = nil
		if digest, _, err := lease(t, memory); digest != "3" || err != nil {
			t.Errorf("digest %q, %v, want a new answer: a failure long ago says nothing", digest, err)
		}
	})
}

func TestARefusalInTheBackgroundCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(resolver)
		memory := known(t, r, 10*time.Second)
		r.err = fault.New(fault.Denied, "refused by policy")
		if digest, _, err := lease(t, memory); digest != "1" || err != nil {
			t.Errorf("digest %q, %v, want what is known while it is asked for anew", digest, err)
		}
		synctest.Wait()
		if _, _, err := lease(t, memory); !errors.Is(err, r.err) {
			t.Errorf("%v, want the refusal: an answer is an answer, also a bad one", err)
		}
	})
}

func TestCallersDoNotWaitLongerThanTheyLike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(resolver)
		memory := known(t, r, 10*time.Minute)
		r.takes = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := memory.ResolveImage(ctx, "fn:v1", ""); fault.Of(err) != fault.DeadlineExceeded {
			t.Errorf("%v, want the caller's deadline", err)
		}
		if digest, took, err := lease(t, memory); digest != "2" || took != 900*time.Millisecond || err != nil {
			t.Errorf("digest %q after %v, %v, want what was asked for already", digest, took, err)
		}
	})
}

func TestRenewalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const functions = 1000
		r := &stuck{answers: functions}
		memory := images.New(r)
		for i := range functions {
			if _, err := memory.ResolveImage(t.Context(), strconv.Itoa(i), ""); err != nil {
				t.Fatal(err)
			}
		}
		recall := func() {
			<-time.After(15 * time.Second)
			for i := range functions {
				if _, ok := memory.Recall(strconv.Itoa(i), ""); !ok {
					t.Fatalf("%d is not known", i)
				}
			}
			synctest.Wait()
		}
		recall()
		if now := r.now.Load(); now != 256 {
			t.Errorf("%d questions at a time, want 256", now)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := memory.Run(ctx); err != nil || r.now.Load() != 0 {
			t.Errorf("%v, and %d questions go on after the end", err, r.now.Load())
		}
		recall()
		if r.now.Load() != 0 {
			t.Error("asked in the background after the end")
		}
	})
}

// stuck is a resolver that gives a number of answers and no more.
type stuck struct {
	answers    int32
	asked, now atomic.Int32
}

func (r *stuck) ResolveImage(ctx context.Context, _ *imageresolverv1.ResolveImageRequest) (*imageresolverv1.ResolveImageResponse, error) {
	r.now.Add(1)
	defer r.now.Add(-1)
	if r.asked.Add(1) > r.answers {
		<-ctx.Done()
	}
	return new(imageresolverv1.ResolveImageResponse), ctx.Err()
}
