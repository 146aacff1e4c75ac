package registrytags_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/registrytags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver counts questions, and answers each with one tag: its number.
type resolver struct {
	mu    sync.Mutex
	asked int
	err   error         // the answer, if there is one
	takes time.Duration // until the answer
}

func (r *resolver) ListTags(ctx context.Context, _ *imageresolverv1.ListTagsRequest) (*imageresolverv1.ListTagsResponse, error) {
	r.mu.Lock()
	r.asked++
	tag, err, takes := strconv.Itoa(r.asked), r.err, r.takes
	r.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, connect.NewError(connect.CodeDeadlineExceeded, ctx.Err())
	}
	if err != nil {
		return nil, rpcfault.ToConnect(err)
	}
	return &imageresolverv1.ListTagsResponse{Tags: []string{tag}}, nil
}

// become changes how the resolver answers from now on.
func (r *resolver) become(takes time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes, r.err = takes, err
}

func (r *resolver) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

const repository = "example.com/fn"

var (
	unavailable = fault.New(fault.Unavailable, "no route to the resolver")
	denied      = fault.New(fault.Precondition, "401 Unauthorized")
)

func TestMemory(t *testing.T) {
	tests := map[string]struct {
		reason string
		after  time.Duration
		err    error
		takes  time.Duration
		tag    string
		waited time.Duration
		asked  int
		class  fault.Class
	}{
		"fresh":              {reason: "an evaluation on a warm pod asks nobody", after: 9 * time.Second, tag: "1", asked: 1},
		"not fresh":          {reason: "versions are released", after: 11 * time.Second, tag: "2", asked: 2},
		"resolver away":      {reason: "running pods do not depend on it", after: 59 * time.Minute, err: unavailable, tag: "1", asked: 2},
		"away for long":      {reason: "what is old may be wrong", after: 61 * time.Minute, err: unavailable, asked: 2, class: fault.Unavailable},
		"resolver hangs":     {reason: "nor do they if it is just silent", after: time.Minute, takes: time.Hour, tag: "1", waited: 5 * time.Second, asked: 2},
		"registry says no":   {reason: "an answer is an answer, also a bad one", after: time.Minute, err: denied, asked: 2, class: fault.Precondition},
		"fresh, resolver up": {reason: "an error to come changes nothing yet", after: time.Second, err: denied, tag: "1", asked: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &resolver{}
				source := registrytags.New(r)
				if _, _, err := source.Tags(t.Context(), repository); err != nil {
					t.Fatal(err)
				}
				<-time.After(tc.after)
				r.become(tc.takes, tc.err)
				began := time.Now()
				got, _, err := source.Tags(t.Context(), repository)
				if waited := time.Since(began); waited != tc.waited || r.questions() != tc.asked {
					t.Errorf("waited %s for %d questions, want %s for %d: %s", waited, r.questions(), tc.waited, tc.asked, tc.reason)
				}
				if tc.tag == "" {
					if err == nil || fault.Of(err) != tc.class {
						t.Errorf("Tags = %v, %v, want an error of class %v: %s", got, err, tc.class, tc.reason)
					}
				} else if err != nil || !slices.Equal(got, []string{tc.tag}) {
					t.Errorf("Tags = %v, %v, want %s: %s", got, err, tc.tag, tc.reason)
				}
				<-time.After(time.Minute) // every request has its end
			})
		})
	}
}

// ask asks for tags n times at once and returns how many got each answer. It fails the
// test if somebody waits other than want.
func ask(t *testing.T, source *registrytags.Source, n int, want time.Duration) map[string]int {
	t.Helper()
	got := make(map[string]int)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range n {
		asking.Go(func() {
			began := time.Now()
			tags, _, err := source.Tags(t.Context(), repository)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(tags) != 1 {
				t.Errorf("Tags = %v, %v", tags, err)
				return
			}
			got[tags[0]]++
			if waited := time.Since(began); waited > want {
				t.Errorf("waited %s, want at most %s", waited, want)
			}
		})
	}
	asking.Wait()
	return got
}

// TestManyAskOnce has evaluations arrive together, at first and when the answer is no
// longer fresh.
func TestManyAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{takes: time.Second}
		source := registrytags.New(r)
		if got := ask(t, source, 100, time.Second); got["1"] != 100 || r.questions() != 1 {
			t.Errorf("answers %v to %d questions, want one question for all", got, r.questions())
		}
		<-time.After(time.Minute)
		var first sync.WaitGroup
		first.Go(func() {
			if got := ask(t, source, 1, time.Second); got["2"] != 1 {
				t.Errorf("whoever asked got %v, want the new answer", got)
			}
		})
		synctest.Wait()
		if got := ask(t, source, 100, 0); got["1"] != 100 || r.questions() != 2 {
			t.Errorf("answers %v after %d questions, want the known answer at once for all", got, r.questions())
		}
		first.Wait()
	})
}

// TestOutageDelaysFew looks at a warm repository while the resolver is away: one
// evaluation in ten seconds waits for a moment.
func TestOutageDelaysFew(t *testing.T) {
	for name, outage := range map[string]struct {
		takes time.Duration
		err   error
	}{
		"silent":      {takes: time.Hour},
		"unreachable": {takes: 2 * time.Second, err: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &resolver{}
				source := registrytags.New(r)
				ask(t, source, 1, 0)
				<-time.After(time.Minute)
				r.become(outage.takes, outage.err)
				delayed := 0
				end := time.Now().Add(time.Minute)
				for time.Now().Before(end) {
					began := time.Now()
					ask(t, source, 1, 5*time.Second)
					if time.Since(began) > 0 {
						delayed++
					}
					<-time.After(100 * time.Millisecond)
				}
				if delayed < 5 || delayed > 7 {
					t.Errorf("%d evaluations of a minute waited, want one in ten seconds", delayed)
				}
				<-time.After(time.Minute)
			})
		})
	}
}

// TestSlowAnswerIsForThoseWhoComeLater has an answer take longer than anybody waits.
func TestSlowAnswerIsForThoseWhoComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{}
		source := registrytags.New(r)
		ask(t, source, 1, 0)
		<-time.After(time.Minute)
		r.become(8*time.Second, nil)
		if got := ask(t, source, 1, 5*time.Second); got["1"] != 1 {
			t.Errorf("got %v, want the known answer", got)
		}
		<-time.After(4 * time.Second)
		if got := ask(t, source, 1, 0); got["2"] != 1 || r.questions() != 2 {
			t.Errorf("got %v after %d questions, want the answer to the second", got, r.questions())
		}
	})
}

// TestWhoLeavesTakesNobodyAlong has the evaluation leave that asks for all.
func TestWhoLeavesTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{takes: 10 * time.Second}
		source := registrytags.New(r)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		left := make(chan error, 1)
		go func() {
			_, _, err := source.Tags(ctx, repository)
			left <- err
		}()
		synctest.Wait()
		if got := ask(t, source, 10, 11*time.Second); got["2"] != 10 || r.questions() != 2 {
			t.Errorf("answers %v to %d questions, want a second question for those who stayed", got, r.questions())
		}
		if err := <-left; fault.Of(err) != fault.DeadlineExceeded {
			t.Errorf("Tags = %v for the one who left, want its deadline", err)
		}
	})
}

// TestRegistryThatSaysNoIsAskedAgain has a refusal come and go: nobody is told what was
// known before it, and nobody has to wait for its end.
func TestRegistryThatSaysNoIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{}
		source := registrytags.New(r)
		ask(t, source, 1, 0)
		<-time.After(time.Minute)
		r.become(0, denied)
		for range 2 {
			if tags, _, err := source.Tags(t.Context(), repository); fault.Of(err) != fault.Precondition {
				t.Errorf("Tags = %v, %v, want the registry's refusal", tags, err)
			}
		}
		r.become(0, nil)
		if got := ask(t, source, 1, 0); got["4"] != 1 {
			t.Errorf("got %v, want the new answer at once", got)
		}
	})
}

// many is a resolver with so many tags in each repository.
type many struct{ tags, asked int }

func (m *many) ListTags(context.Context, *imageresolverv1.ListTagsRequest) (*imageresolverv1.ListTagsResponse, error) {
	m.asked++
	return &imageresolverv1.ListTagsResponse{Tags: make([]string, m.tags)}, nil
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &many{tags: 1000}
		source := registrytags.New(m)
		know := func(repository string) bool {
			before := m.asked
			if _, _, err := source.Tags(t.Context(), repository); err != nil {
				t.Fatal(err)
			}
			return m.asked == before
		}
		for i := range 1000 {
			know(strconv.Itoa(i))
		}
		if !know("999") {
			t.Error("the newest answer is not remembered")
		}
		m.tags = 1_000_000
		know("all")
		if know("all") {
			t.Error("an answer is remembered that is too large")
		}
		if !know("999") {
			t.Error("an answer that is too large takes the place of others")
		}
		m.tags = 1000
		known := 0
		for i := range 1000 {
			if know(strconv.Itoa(i)) {
				known++
			}
		}
		if known > 200 {
			t.Errorf("%d answers of 1000 tags are remembered, want at most 200", known)
		}
	})
}
