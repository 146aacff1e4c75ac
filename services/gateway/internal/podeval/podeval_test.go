// SPDX-License-Identifier: Apache-2.0

package podeval_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/dial"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/cutproxy"
	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podeval"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const list = "kind: ResourceList\nitems: []\n"

// newRequest returns a request that no evaluator has handled yet.
func newRequest() evaluation.Request {
	return evaluation.Request{
		Given: "fn:v1", Image: imagename.Name{Repository: "example.com/fn", Tag: "v1"}, ResourceList: []byte(list),
		Measured: evalmetrics.NewActive(noop.NewMeterProvider()).Begin("fn:v1"),
	}
}

// connectTimeout is the connect timeout of a new pod. Another pod has a fifth.
const connectTimeout = 5 * time.Second

// newEvaluator returns an evaluator that retries twice.
func newEvaluator(t *testing.T, m lease.Manager, tel *telemetry.Telemetry) *podeval.Evaluator {
	t.Helper()
	return newEvaluatorOver(t, nil, m, tel)
}

// newEvaluatorIn returns an evaluator that retries twice, for pods in a network in memory.
func newEvaluatorIn(t *testing.T, network *pipenet.Network, m lease.Manager) *podeval.Evaluator {
	t.Helper()
	return newEvaluatorOver(t, network.Dial, m, telemetry.Discard())
}

// newEvaluatorOver returns an evaluator that connects by dial, or over the machine's network if dial is nil.
func newEvaluatorOver(
	t *testing.T, dial dial.Func, m lease.Manager, tel *telemetry.Telemetry,
) *podeval.Evaluator {
	t.Helper()
	conns := podconn.New(podconn.Config{Idle: time.Minute, Max: 10, MaxMessageBytes: 1 << 20, Telemetry: tel, Dial: dial})
	e := podeval.New(podeval.Config{
		Leases: m, Conns: conns, MaxRetries: 2, ConnectTimeout: connectTimeout, Telemetry: tel,
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = conns.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return e
}

// pods leases the pods one after the other, and the last one again and again.
func pods(granted ...*lease.Granted) leasetest.Grant {
	var next atomic.Int64
	return func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		return granted[min(int(next.Add(1)), len(granted))-1], nil
	}
}

func pod(name, address string) *lease.Granted {
	return &lease.Granted{Pod: name, PodUid: "uid-of-" + name, Address: address}
}

func echo(_ context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList(), Log: []byte(req.GetImage())}, nil
}

// refused is an address without a listener.
const refused = "127.0.0.1:1"

// failing returns the address of a pod whose answer is always err.
func failing(t *testing.T, err error) (address string) {
	t.Helper()
	return testpod.Serve(t, 1<<20, fail(err))
}

// fail returns a function whose answer is always err.
func fail(err error) testpod.Func {
	return func(context.Context, *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
		return nil, err
	}
}

// hang returns a function that never answers. It calls begun when an evaluation begins, and ended after the
// evaluation's end; both may be nil.
func hang(begun, ended func()) testpod.Func {
	return func(
		ctx context.Context, _ *evaluator.EvaluateFunctionRequest,
	) (*evaluator.EvaluateFunctionResponse, error) {
		if begun != nil {
			begun()
		}
		<-ctx.Done()
		if ended != nil {
			ended()
		}
		return nil, ctx.Err()
	}
}

// exitCode returns the exit code in the details of a function's failure, and -1 for other errors.
func exitCode(err error) int32 {
	failure, ok := errors.AsType[*function.Failure](err)
	if !ok {
		return -1
	}
	return failure.Detail().(*functionrunnerv1.FunctionFailure).GetExitCode()
}

// timedOut begins the text of an evaluation for which the time was too short.
const timedOut = "function evaluation timed out for fn:v1: after "

// isTimeout reports whether err is of class DeadlineExceeded and has that text.
func isTimeout(err error) bool {
	return fault.Of(err) == fault.DeadlineExceeded && strings.HasPrefix(err.Error(), timedOut)
}

func TestEvaluate(t *testing.T) {
	var opened *lease.Open
	address := testpod.Serve(t, 1<<20, echo)
	m := leasetest.NewManager(func(_ context.Context, open *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
		opened = open
		return pod("a", address), nil
	})
	resp, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(t.Context(), newRequest())
	if err != nil || string(resp.ResourceList) != list || string(resp.Log) != "fn:v1" {
		t.Errorf("got %q, log %q, %v", resp.ResourceList, resp.Log, err)
	}
	if opened.GetImage() != "example.com/fn:v1" || opened.GetAttempt() != 1 {
		t.Errorf("leased with %v, want the canonical name and the first attempt", opened)
	}
	if got := m.AwaitFinish(t); got != (leasetest.Finish{Pod: "a", Outcome: lease.Done}) {
		t.Errorf("finished with %v", got)
	}
}

func TestABrokenPodIsReportedAndAnotherTried(t *testing.T) {
	fails := func(code connect.Code) testpod.Func {
		return fail(connect.NewError(code, errors.New("not a wrapper server")))
	}
	lies := func(code connect.Code) testpod.Func {
		return fail(withDetails(t, connect.NewError(code, errors.New("not a wrapper server")),
			&functionrunnerv1.FunctionFailure{ExitCode: 1}, &errdetails.RetryInfo{}))
	}
	var bad *pipenet.Host
	for name, tc := range map[string]struct {
		answer testpod.Func // nil for a pod without a server
		reason string
	}{
		"refused":                         {nil, "connection refused"},
		"unknown host":                    {nil, "no such host"},
		"killed":                          {hang(func() { bad.Kill() }, nil), ""},
		"unavailable":                     {fails(connect.CodeUnavailable), "not a wrapper server"},
		"unimplemented":                   {fails(connect.CodeUnimplemented), "not a wrapper server"},
		"not found":                       {fails(connect.CodeNotFound), "not a wrapper server"},
		"unknown":                         {fails(connect.CodeUnknown), "not a wrapper server"},
		"stopped itself":                  {fails(connect.CodeCanceled), "not a wrapper server"},
		"gave up itself":                  {fails(connect.CodeDeadlineExceeded), "not a wrapper server"},
		"not found, with our details":     {lies(connect.CodeNotFound), "not a wrapper server"},
		"unimplemented, with our details": {lies(connect.CodeUnimplemented), "not a wrapper server"},
		"canceled, with our details":      {lies(connect.CodeCanceled), "not a wrapper server"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network pipenet.Network
				testpod.ServeAt(t, &network, "good:9446", 1<<20, echo)
				if tc.answer != nil {
					bad = testpod.ServeAt(t, &network, "bad:9446", 1<<20, tc.answer)
				}
				dial := func(ctx context.Context, protocol, address string) (net.Conn, error) {
					if name == "unknown host" && address == "bad:9446" {
						return nil, &net.DNSError{Err: "no such host", Name: "bad", IsNotFound: true}
					}
					return network.Dial(ctx, protocol, address)
				}
				var opens []*lease.Open
				lend := pods(pod("bad", "bad:9446"), pod("good", "good:9446"))
				m := leasetest.NewManager(func(
					ctx context.Context, open *lease.Open, waiting func(*lease.Waiting),
				) (*lease.Granted, error) {
					opens = append(opens, open)
					return lend(ctx, open, waiting)
				})
				resp, err := newEvaluatorOver(t, dial, m, telemetry.Discard()).Evaluate(t.Context(), newRequest())
				if err != nil || string(resp.ResourceList) != list {
					t.Fatalf("got %q, %v", resp.ResourceList, err)
				}
				got := m.AwaitFinish(t)
				if got.Pod != "bad" || got.Outcome != lease.PodBroken ||
					got.Reason == "" || !strings.Contains(got.Reason, tc.reason) {
					t.Errorf("the first lease finished with %v, want the reason %q", got, tc.reason)
				}
				if got := m.AwaitFinish(t); got.Pod != "good" || got.Outcome != lease.Done {
					t.Errorf("the second lease finished with %v", got)
				}
				second := opens[1]
				if second.GetAttempt() != 2 || !slices.Equal(second.GetAvoidPods(), []string{"bad"}) {
					t.Errorf("the second lease was opened with %v", second)
				}
			})
		})
	}
}

func TestRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leasetest.NewManager(pods(pod("a", refused), pod("b", refused), pod("c", refused), pod("d", refused)))
		_, err := newEvaluatorIn(t, new(pipenet.Network), m).Evaluate(t.Context(), newRequest())
		if fault.Of(err) != fault.Unavailable {
			t.Errorf("error %v of class %v, want unavailable", err, fault.Of(err))
		}
		for _, want := range []string{
			"unable to evaluate fn:v1 with pod evaluator: pod c broke: ",
			"connection refused",
			"3 pods broke one after the other: a, b, c",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
	})
}

func TestTheWrappersOwnErrorsArePassedOn(t *testing.T) {
	detail := &functionrunnerv1.FunctionFailure{
		Image:    "fn:v1",
		Reason:   function.Exited,
		ExitCode: 3,
		Results:  []*functionrunnerv1.Result{{Severity: "error", Message: "m"}},
	}
	failed := connect.NewError(connect.CodeInternal, errors.New("it failed"))
	notStarted := connect.NewError(connect.CodeUnavailable, errors.New("it failed"))
	queue := connect.NewError(connect.CodeResourceExhausted, errors.New("queue full"))
	for _, e := range []*connect.Error{failed, notStarted} {
		d, _ := connect.NewErrorDetail(detail)
		e.AddDetail(d)
	}
	d, _ := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)})
	queue.AddDetail(d)
	plain := func(code connect.Code) error { return connect.NewError(code, errors.New("x")) }
	tests := map[string]struct {
		reason string
		err    error
		want   fault.Class
	}{
		"function failed": {"a function that fails is no broken pod", failed, fault.Internal},
		"not started":     {"nor is one that could not be started, and said so", notStarted, fault.Unavailable},
		"queue full":      {"nor is one that is busy: the hint is for the caller", queue, fault.Exhausted},
		"too large":       {"nor is one with limits", plain(connect.CodeResourceExhausted), fault.Exhausted},
		"invalid":         {"the wrapper checks, too", plain(connect.CodeInvalidArgument), fault.Invalid},
		"internal":        {"a defect would be one on the next pod", plain(connect.CodeInternal), fault.Internal},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := leasetest.NewManager(pods(pod("a", failing(t, tc.err))))
			_, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(t.Context(), newRequest())
			var cerr *connect.Error
			errors.As(tc.err, &cerr)
			want := "unable to evaluate fn:v1 with pod evaluator: " + cerr.Message()
			if fault.Of(err) != tc.want || err.Error() != want {
				t.Errorf("error %q of class %v, want %q and %v: %s", err, fault.Of(err), want, tc.want, tc.reason)
			}
			if got := m.AwaitFinish(t); got.Outcome != lease.Done {
				t.Errorf("finished with %v, want done: %s", got, tc.reason)
			}
			if name == "function failed" && exitCode(err) != 3 {
				t.Errorf("the details are lost: %v", err)
			}
			if after, _ := fault.RetryAfter(err); (after == 3*time.Second) != (name == "queue full") {
				t.Errorf("retry after %v", after)
			}
		})
	}
}

func TestTheCallersCancellationReachesTheFunction(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	stopped := make(chan struct{})
	m := leasetest.NewManager(pods(pod("a", testpod.Serve(t, 1<<20, hang(leave, func() { close(stopped) })))))
	_, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(ctx, newRequest())
	if fault.Of(err) != fault.Canceled {
		t.Errorf("error %v of class %v, want canceled", err, fault.Of(err))
	}
	<-stopped
	if got := m.AwaitFinish(t); got.Outcome != lease.Abandoned {
		t.Errorf("finished with %v, want abandoned", got)
	}
}

// TestAPodsDeadline has a pod whose clock is a little ahead of the caller's.
func TestAPodsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		early := fail(connect.NewError(connect.CodeDeadlineExceeded, context.DeadlineExceeded))
		testpod.ServeAt(t, &network, "a:9446", 1<<20, early)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		m := leasetest.NewManager(pods(pod("a", "a:9446")))
		_, err := newEvaluatorIn(t, &network, m).Evaluate(ctx, newRequest())
		if !isTimeout(err) {
			t.Errorf("error %v of class %v, want the caller's deadline", err, fault.Of(err))
		}
		if got := m.AwaitFinish(t); got.Outcome != lease.Abandoned {
			t.Errorf("finished with %v, want abandoned", got)
		}
	})
}

// TestEvaluationTime has callers who wait for ever, and pods that hang.
func TestEvaluationTime(t *testing.T) {
	granted := func(own time.Duration) leasetest.Grant {
		g := pod("fn-1", "fn-1:9446")
		if own > 0 {
			g.MaxEvaluationTime = durationpb.New(own)
		}
		return pods(g)
	}
	never := func(ctx context.Context, _ *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	tests := map[string]struct {
		reason      string
		limit       time.Duration // the gateway's limit
		grant       leasetest.Grant
		took        time.Duration
		phase, want string
	}{
		"the gateway's": {
			"it counts all", 50 * time.Millisecond, granted(0), 50 * time.Millisecond,
			"the function was running in pod fn-1", "may take 50ms: raise FNR_TEST",
		},
		"the function's": {
			"it counts the run", time.Hour, granted(60 * time.Millisecond), 60 * time.Millisecond,
			"the function was running", "may take 60ms: raise maxEvaluationTime of fn:v1 in the pod cache configuration",
		},
		"the function's later": {
			"it takes the gateway's place", 500 * time.Millisecond, granted(600 * time.Millisecond), 600 * time.Millisecond,
			"the function was running", "may take 600ms: raise maxEvaluationTime",
		},
		"waiting": {
			"no pod is waited for longer", 50 * time.Millisecond, never, 50 * time.Millisecond,
			"waiting for a pod", "may take 50ms: raise FNR_TEST",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network pipenet.Network
				testpod.ServeAt(t, &network, "fn-1:9446", 1<<20, hang(nil, nil))
				req := newRequest()
				req.Limit = function.NewTimeLimit(tc.limit, "FNR_TEST")
				begin := time.Now()
				_, err := newEvaluatorIn(t, &network, leasetest.NewManager(tc.grant)).Evaluate(t.Context(), req)
				if !isTimeout(err) || time.Since(begin) != tc.took {
					t.Fatalf("error %v of class %v after %v: %s", err, fault.Of(err), time.Since(begin), tc.reason)
				}
				if !strings.Contains(err.Error(), tc.phase) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %q does not say %q in the phase %q: %s", err, tc.want, tc.phase, tc.reason)
				}
			})
		})
	}
}

// TestAWrappersOwnLimit has a wrapper server whose limit is shorter than the gateway's, as
// that of a pod from before a setting was changed: the pod is not broken.
func TestAWrappersOwnLimit(t *testing.T) {
	passed := connect.NewError(connect.CodeDeadlineExceeded,
		errors.New("function evaluation timed out for fn:v1: it may take 1s"))
	d, _ := connect.NewErrorDetail(&functionrunnerv1.FunctionFailure{Image: "fn:v1", Reason: function.TimedOut})
	passed.AddDetail(d)
	m := leasetest.NewManager(pods(pod("a", failing(t, passed))))
	_, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(t.Context(), newRequest())
	if fault.Of(err) != fault.DeadlineExceeded || !strings.Contains(err.Error(), "it may take 1s") {
		t.Errorf("error %v of class %v, want the wrapper's words", err, fault.Of(err))
	}
	if got := m.AwaitFinish(t); got.Outcome != lease.Done {
		t.Errorf("finished with %v, want done", got)
	}
}

// TestALookupsDeadline has an image-resolver that ends its wait for a registry a little
// before the caller's deadline, so that what it says is heard.
func TestALookupsDeadline(t *testing.T) {
	const words = "look up the image fn:v1: the answer was still being fetched"
	m := leasetest.NewManager(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		return nil, fault.New(fault.DeadlineExceeded, words)
	})
	for within, want := range map[time.Duration]fault.Class{
		500 * time.Millisecond: fault.DeadlineExceeded,
		time.Minute:            fault.Unavailable, // another deadline: the caller may try again
	} {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(ctx, newRequest())
		if fault.Of(err) != want || !strings.Contains(err.Error(), words) {
			t.Errorf("with %v left: error %v of class %v, want class %v", within, err, fault.Of(err), want)
		}
		if isTimeout(err) != (want == fault.DeadlineExceeded) {
			t.Errorf("with %v left: error %v", within, err)
		}
	}
}

// deadline is a context whose deadline passes when a test says so.
type deadline struct{ context.Context } //nolint:containedctx // it is one

func newDeadline(t *testing.T) (ctx deadline, pass context.CancelFunc) {
	inner, pass := context.WithCancel(t.Context())
	return deadline{inner}, pass
}

func (d deadline) Err() error {
	if d.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// defective is a context whose deadline cannot be asked for after a lease was granted.
type defective struct {
	context.Context //nolint:containedctx // it is one
	granted         *atomic.Bool
}

func (d defective) Deadline() (time.Time, bool) {
	if d.granted.Load() {
		panic("a defect")
	}
	return d.Context.Deadline()
}

// TestAPanicEndsTheLease: Connect recovers from panics of handlers, and the pod must get its slot back.
func TestAPanicEndsTheLease(t *testing.T) {
	var granted atomic.Bool
	lend := pods(pod("good", refused))
	m := leasetest.NewManager(func(
		ctx context.Context, open *lease.Open, waiting func(*lease.Waiting),
	) (*lease.Granted, error) {
		granted.Store(true)
		return lend(ctx, open, waiting)
	})
	e := newEvaluator(t, m, telemetry.Discard())
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the evaluation did not panic")
			}
		}()
		_, _ = e.Evaluate(defective{t.Context(), &granted}, newRequest())
	}()
	if got := m.AwaitFinish(t); got.Pod != "good" || got.Outcome != lease.Abandoned {
		t.Errorf("the lease finished with %v", got)
	}
}

// TestDeadlines has callers whose deadline passes at each step.
func TestDeadlines(t *testing.T) {
	var pass context.CancelFunc
	address := testpod.Serve(t, 1<<20, hang(func() { pass() }, nil))
	waits := func(w *lease.Waiting) leasetest.Grant {
		return func(ctx context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
			if w != nil {
				waiting(w)
			}
			pass()
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	connects := func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		time.AfterFunc(10*time.Millisecond, pass)
		return &lease.Granted{Pod: "fn-1", Address: refused, ColdStart: true}, nil
	}
	tests := map[string]struct {
		grant leasetest.Grant
		want  string
	}{
		"nothing heard": {waits(nil), ", waiting for a pod: the pod-manager has not answered"},
		"queued": {
			waits(&lease.Waiting{
				Phase: podmanagerv1.Phase_PHASE_QUEUED, Position: 7, Reason: "all 2 pods are busy",
			}),
			", waiting for a pod: queued at position 7 (all 2 pods are busy)",
		},
		"pulling": {
			waits(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_PULLING, Pod: "fn-1", Reason: "Pulling image"}),
			", waiting for a pod: pulling images, pod fn-1 (Pulling image)",
		},
		"connecting": {connects, ", connecting to pod fn-1 ("},
		"running":    {pods(pod("fn-1", address)), ", the function was running in pod fn-1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var ctx deadline
			ctx, pass = newDeadline(t)
			defer pass()
			_, err := newEvaluator(t, leasetest.NewManager(tc.grant), telemetry.Discard()).Evaluate(ctx, newRequest())
			if !isTimeout(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v of class %v, want %q", err, fault.Of(err), tc.want)
			}
		})
	}
}

func TestErrorsOfLeases(t *testing.T) {
	for given, want := range map[fault.Class]fault.Class{
		fault.Precondition:  fault.Precondition,
		fault.Exhausted:     fault.Exhausted,
		fault.Denied:        fault.Denied,
		fault.NotFound:      fault.Unavailable,
		fault.Unimplemented: fault.Unavailable,
		// The caller still waits.
		fault.DeadlineExceeded: fault.Unavailable,
		fault.Canceled:         fault.Unavailable,
	} {
		m := leasetest.NewManager(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			return nil, fault.WithRetryAfter(fault.New(given, "the kubelet's words"), time.Second)
		})
		_, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(t.Context(), newRequest())
		const text = "unable to get the grpc client to the pod for fn:v1: the kubelet's words"
		if fault.Of(err) != want || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("error %v of class %v, want class %v", err, fault.Of(err), want)
		}
		if _, ok := fault.RetryAfter(err); !ok {
			t.Error("the retry hint is lost")
		}
	}
}

func TestAListThatIsTooLargeIsNotSent(t *testing.T) {
	granted := pod("a", refused)
	granted.MaxMessageBytes = 10
	m := leasetest.NewManager(pods(granted))
	_, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(t.Context(), newRequest())
	if fault.Of(err) != fault.Exhausted || !strings.Contains(err.Error(), "take up to 10") {
		t.Errorf("error %v of class %v, want exhausted", err, fault.Of(err))
	}
	if got := m.AwaitFinish(t); got.Outcome != lease.Done {
		t.Errorf("finished with %v, want done", got)
	}
}

// TestANewPodThatIsNotReachableAtOnce is as with a Service whose rules come later
// than the pod.
func TestANewPodThatIsNotReachableAtOnce(t *testing.T) {
	address := freeport.Address(t) // refuses until the proxy listens
	target := testpod.Serve(t, 1<<20, echo)
	m := leasetest.NewManager(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		time.AfterFunc(100*time.Millisecond, func() { cutproxy.NewAt(t, address, target) })
		return &lease.Granted{Pod: "a", Address: address, ColdStart: true}, nil
	})
	if _, err := newEvaluator(t, m, telemetry.Discard()).Evaluate(t.Context(), newRequest()); err != nil {
		t.Error(err)
	}
	if got := m.AwaitFinish(t); got.Outcome != lease.Done {
		t.Errorf("finished with %v, want done", got)
	}
}

// TestNameServersAreNotThePodsFault: a pod is tried for as long as a new one if name servers do not answer, and not
// reported as broken.
func TestNameServersAreNotThePodsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no name server answers", Name: "no.such.name.invalid"}
		}
		m := leasetest.NewManager(pods(pod("a", "no.such.name.invalid:9446")))
		begin := time.Now()
		_, err := newEvaluatorOver(t, dial, m, telemetry.Discard()).Evaluate(t.Context(), newRequest())
		if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "no.such.name.invalid") {
			t.Errorf("error %v of class %v, want unavailable", err, fault.Of(err))
		}
		if took := time.Since(begin); took != 3*connectTimeout {
			t.Errorf("three attempts took %v, want %v each", took, connectTimeout)
		}
		for range 3 {
			if ended := m.AwaitFinish(t); ended.Outcome != lease.Done {
				t.Errorf("a lease ended with %v: %s", ended.Outcome, ended.Reason)
			}
		}
	})
}

// TestConnectionsOfBrokenPodsAreNotUsedAgain: the next attempt on the pod has a new one.
func TestConnectionsOfBrokenPodsAreNotUsedAgain(t *testing.T) {
	conns := podconn.New(podconn.Config{
		Idle: time.Minute, Max: 10, MaxMessageBytes: 1 << 20, Telemetry: telemetry.Discard(),
	})
	address := failing(t, connect.NewError(connect.CodeUnavailable, errors.New("not by the wrapper server")))
	e := podeval.New(podeval.Config{
		Leases: leasetest.NewManager(pods(pod("a", address))), Conns: conns, ConnectTimeout: time.Minute,
		Telemetry: telemetry.Discard(),
	})
	if _, err := e.Evaluate(t.Context(), newRequest()); fault.Of(err) != fault.Unavailable {
		t.Errorf("error %v, want that the pod broke", err)
	}
	if n := conns.Len(); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}
