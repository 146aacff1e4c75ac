// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

const list = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"

// run runs cmd over a list, as a service does whose configuration is changed by the functions.
func run(
	t *testing.T, image string, cmd fnproc.Command, change ...func(*function.ServiceConfig),
) (function.Result, error) {
	t.Helper()
	return newService(t, change...).Evaluate(t.Context(), evaluation(image, cmd))
}

// evaluation returns an evaluation of a list.
func evaluation(image string, cmd fnproc.Command) function.Evaluation {
	return function.Evaluation{Image: image, Command: cmd, ResourceList: []byte(list)}
}

func newService(t *testing.T, change ...func(*function.ServiceConfig)) *function.Pod {
	t.Helper()
	cfg := function.ServiceConfig{
		Program: "test", Confinement: function.Confinement{Confine: confine.Off}, MaxMessageBytes: 1 << 20,
		Env: []string{"PATH=/bin:/usr/bin"}, Wording: function.WrapperWording, Telemetry: telemetry.Discard(),
	}
	for _, f := range change {
		f(&cfg)
	}
	service, err := function.NewPod(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// maxMessage changes the limit of messages.
func maxMessage(bytes int) func(*function.ServiceConfig) {
	return func(cfg *function.ServiceConfig) { cfg.MaxMessageBytes = bytes }
}

// command installs the function of that behaviour.
func command(t *testing.T, behaviour string) fnproc.Command {
	t.Helper()
	dir := t.TempDir()
	testfn.Install(t, dir, behaviour)
	return fnproc.Command{Path: filepath.Join(dir, behaviour)}
}

func TestFailureForPrograms(t *testing.T) {
	_, err := run(t, "example.com/fn:v1", command(t, "exit1"))
	failure, ok := errors.AsType[*function.Failure](err)
	if !ok {
		t.Fatalf("error %v is no failure", err)
	}
	detail, _ := failure.Detail().(*functionrunnerv1.FunctionFailure)
	want := &functionrunnerv1.FunctionFailure{
		Image: "example.com/fn:v1", Reason: function.Exited, ExitCode: 1, Stderr: "failed: one resource is invalid\n",
		Results: []*functionrunnerv1.Result{{
			Message: "replicas must not be negative", Severity: "error",
			ResourceRef: &functionrunnerv1.Result_ResourceRef{
				ApiVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart",
			},
			Field: &functionrunnerv1.Result_Field{Path: "spec.replicas"},
		}},
	}
	if !proto.Equal(detail, want) {
		t.Errorf("detail\n%v\nwant\n%v", detail, want)
	}
}

func TestDetailFitsIntoAHeader(t *testing.T) {
	_, err := run(t, "fn", command(t, "flood-stderr=1000000"))
	failure, ok := errors.AsType[*function.Failure](err)
	if !ok {
		t.Fatalf("error %v is no failure", err)
	}
	if size := proto.Size(failure.Detail()); size > 16<<10 {
		t.Errorf("the detail has %d bytes", size)
	}
	if size := len(failure.Error()); size > 8<<10 {
		t.Errorf("the text has %d bytes", size)
	}
}

// TestDetailIsUTF8 has a function that logs and reports what no message may hold.
func TestDetailIsUTF8(t *testing.T) {
	script := `printf 'broken \377 log' >&2; printf 'kind: ResourceList\nresults:\n- message: !!binary /w==\n'; exit 1`
	cmd := fnproc.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}}
	_, err := run(t, "fn", cmd)
	failure, ok := errors.AsType[*function.Failure](err)
	if !ok {
		t.Fatalf("error %v is no failure", err)
	}
	detail, _ := failure.Detail().(*functionrunnerv1.FunctionFailure)
	if got, want := detail.GetStderr(), "broken \uFFFD log"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if got := detail.GetResults(); len(got) != 1 || got[0].GetMessage() != "\uFFFD" {
		t.Errorf("results %v, want one in UTF-8", got)
	}
	if _, err := proto.Marshal(detail); err != nil {
		t.Errorf("the detail cannot be sent: %v", err)
	}
}

// TestWhichLimitWasPassed has functions that write too much of one of both.
func TestWhichLimitWasPassed(t *testing.T) {
	tests := map[string]struct {
		script string
		reason function.Reason
		want   string
	}{
		"output": {
			"exec cat /dev/zero", function.OutputTooLarge, "it wrote more than the 131008 bytes of output that are allowed",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := fnproc.Command{Path: "/bin/sh", Args: []string{"-c", tc.script}, Env: []string{"PATH=/bin:/usr/bin"}}
			_, err := run(t, "fn", cmd, maxMessage(128<<10))
			failure, ok := errors.AsType[*function.Failure](err)
			if !ok || failure.Reason != tc.reason || fault.Of(err) != fault.Exhausted ||
				!strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one of class exhausted and reason %v that says %q", err, tc.reason, tc.want)
			}
		})
	}
}

func TestReceivedDetailIsBounded(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	sent := &functionrunnerv1.FunctionFailure{
		Image: large, Reason: function.Exited, ExitCode: 7, Signal: large, SignalCause: large, Stderr: large,
		ResultsOmitted: 3, Results: []*functionrunnerv1.Result{
			{Message: "first"}, {Message: large}, {Tags: map[string]string{large: large}},
		},
	}
	sent.ProtoReflect().SetUnknown([]byte("\xfa\x06\x01x"))
	failure := function.Received("text", sent)
	detail, _ := failure.Detail().(*functionrunnerv1.FunctionFailure)
	if size := proto.Size(detail); size > 16<<10 || len(failure.Signal) > 128 || len(failure.SignalCause) > 512 {
		t.Errorf("the detail has %d bytes, the signal %d, its cause %d",
			size, len(failure.Signal), len(failure.SignalCause))
	}
	if detail.GetReason() != function.Exited || detail.GetExitCode() != 7 || detail.GetResultsOmitted() != 5 ||
		len(detail.GetResults()) != 1 || detail.GetResults()[0].GetMessage() != "first" {
		t.Errorf("detail %.200v, want reason, exit code, the first result and a count of the others", detail)
	}
	if whole := function.Received("text", detail).Detail(); !proto.Equal(whole, detail) {
		t.Errorf("a small detail is passed on as %v", whole)
	}
}

func TestLogOfASuccessIsShortenedBeforeTheOutput(t *testing.T) {
	result, err := run(t, "fn", command(t, "warn"), maxMessage(4<<10))
	if err != nil || string(result.Log) != "one resource is invalid\n" {
		t.Fatalf("a short log is %q, %v", result.Log, err)
	}
	limit := len(result.ResourceList) + 64 + 10
	result, err = run(t, "fn", command(t, "warn"), maxMessage(limit))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(result.ResourceList) + len(result.Log); n > limit {
		t.Errorf("output and log have %d bytes, the limit is %d", n, limit)
	}
}

func TestCallerWhoLeaves(t *testing.T) {
	hang := command(t, "hang")
	for class, leave := range map[fault.Class]func() (context.Context, context.CancelFunc){
		fault.DeadlineExceeded: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 50*time.Millisecond)
		},
		fault.Canceled: func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			return ctx, cancel
		},
	} {
		ctx, cancel := leave()
		_, err := newService(t).Evaluate(ctx, evaluation("example.com/fn:v1", hang))
		cancel()
		if fault.Of(err) != class || !strings.Contains(err.Error(), "example.com/fn:v1") {
			t.Errorf("error %v of class %v, want %v and the image", err, fault.Of(err), class)
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	root := t.TempDir()
	counter := filepath.Join(root, "memory.events")
	count := func(kills string) {
		t.Helper()
		if err := os.WriteFile(counter, []byte("oom_kill "+kills+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	count("0")
	service := newService(t)
	service.SetKills(cgroup.NewKills(root))
	killed := command(t, "signal")
	const remedy = "out of memory: give the function a larger memory limit, or make the package smaller"
	for _, tc := range []struct{ reason, kills, want, cause string }{
		{"another process killed it", "0", "': signal: killed; ", ""},
		{"the kernel killed it", "1", "': signal: killed (out of memory: ", remedy},
		{"another process killed another one", "1", "': signal: killed; ", ""},
	} {
		count(tc.kills)
		_, err := service.Evaluate(t.Context(), evaluation("example.com/fn:v1", killed))
		if fault.Of(err) != fault.Internal || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", tc.reason, err, tc.want)
		}
		if failure, ok := errors.AsType[*function.Failure](err); !ok || failure.SignalCause != tc.cause {
			t.Errorf("%s: failure %+v, want the cause %q", tc.reason, failure, tc.cause)
		}
	}
}

func TestSpanSaysHowTheProcessEnded(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	if _, err := run(t, "fn", command(t, "exit1"), recordSpans(spans)); err == nil {
		t.Fatal("no error")
	}
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "fn.exec" {
		t.Fatalf("spans %v, want one fn.exec", ended)
	}
	attrs := attribute.NewSet(ended[0].Attributes()...)
	if code, ok := attrs.Value("process.exit.code"); !ok || code.AsInt64() != 1 {
		t.Errorf("attributes %v, want the exit code", ended[0].Attributes())
	}
}

// TestPreforkIsTold checks the span's attribute and the metric, with a process that was
// not there yet and with one that was.
func TestPreforkIsTold(t *testing.T) {
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	echo := command(t, "echo")
	service := newService(t, recordSpans(spans), func(cfg *function.ServiceConfig) {
		cfg.Telemetry.Meters = metric.NewMeterProvider(metric.WithReader(reader))
		cfg.Prefork, cfg.PreforkTotal = 1, 1
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = service.Maintain(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	for range 2 {
		if _, err := service.Evaluate(t.Context(), evaluation("fn", echo)); err != nil {
			t.Fatal(err)
		}
		await.Equal(t, "spare processes", service.Spares, 1)
	}
	for i, want := range []string{"miss", "hit"} {
		attrs := attribute.NewSet(spans.Ended()[i].Attributes()...)
		if got, _ := attrs.Value("fn.prefork"); got.AsString() != want {
			t.Errorf("run %d: the span says %q, want %q", i, got.AsString(), want)
		}
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	attributes := func(outcome string) attribute.Set {
		return attribute.NewSet(attribute.String("function", "echo"), attribute.String("outcome", outcome))
	}
	want := metricdata.Sum[int64]{
		Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
		DataPoints: []metricdata.DataPoint[int64]{
			{Attributes: attributes("miss"), Value: 1}, {Attributes: attributes("hit"), Value: 1},
		},
	}
	if m := got.ScopeMetrics[0].Metrics; len(m) != 1 || m[0].Name != "fn.prefork" {
		t.Errorf("metrics %v, want fn.prefork", m)
	} else {
		metricdatatest.AssertEqual(t, want, m[0].Data.(metricdata.Sum[int64]),
			metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	}
}

// recordSpans has a service record its spans.
func recordSpans(spans *tracetest.SpanRecorder) func(*function.ServiceConfig) {
	return func(cfg *function.ServiceConfig) {
		tel := *cfg.Telemetry
		tel.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		cfg.Telemetry = &tel
	}
}

func TestCheckInput(t *testing.T) {
	if err := function.CheckInput(t.Context(), "fn", []byte(list)); err != nil {
		t.Error(err)
	}
	for name, input := range map[string]string{
		"empty": "", "not UTF-8": "kind: \xff", "another kind": "kind: List", "broken": "kind: [",
	} {
		if err := function.CheckInput(t.Context(), "fn", []byte(input)); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v, want an error of class invalid", name, err)
		}
	}
}

// TestTimeoutsNameTheirSetting has the time be over before a list could be decoded.
func TestTimeoutsNameTheirSetting(t *testing.T) {
	ctx, cancel := function.NewTimeLimit(1, "FNR_SOME_TIME").Context(t.Context())
	defer cancel()
	<-ctx.Done()
	err := function.CheckInput(ctx, "fn", []byte(`{"kind": "ResourceList", "items": [{"a": [{"b": "c"}]}]}`))
	if fault.Of(err) != fault.DeadlineExceeded || !strings.Contains(err.Error(), "raise FNR_SOME_TIME") {
		t.Errorf("%v of class %v, want a timeout with what to do about it", err, fault.Of(err))
	}
}

// The reserve is part of each limit, is never larger than an eighth of it, and holds a server's program if it can.
func TestMemoryReserve(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]int64{32: 4, 96: 12, 128: 16, 256: 16, 512: 32, 4096: 256} {
		if got := function.MemoryReserve(limit << 20); got != want<<20 {
			t.Errorf("MemoryReserve(%d MiB) = %d bytes, want %d MiB", limit, got, want)
		}
	}
}
