// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is one about the image with a number.
func event(i int) audit.Event {
	return audit.Event{Image: audit.Image{Given: fmt.Sprintf("fn-%d", i)}, Verdict: audit.NoPolicy, Code: "ok"}
}

// output keeps the images of events. It writes nothing until it is open, and fails as often as it should.
type output struct {
	open   chan struct{}
	fails  int
	images []string
	closed bool
}

func (o *output) Write(ctx context.Context, events []audit.Event) error {
	select {
	case <-o.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	if o.fails > 0 {
		o.fails--
		return errors.New("disk full")
	}
	for _, e := range events {
		o.images = append(o.images, e.Image.Given)
	}
	return nil
}

func (o *output) Close() error {
	o.closed = true
	return nil
}

// run runs a log until end is called.
func run(t *testing.T, cfg audit.Config) (l *audit.Log, end func()) {
	t.Helper()
	l, err := audit.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	return l, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestAFullQueueDrops has an output that is slow, and one event that it works on.
func TestAFullQueueDrops(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		out := &output{open: make(chan struct{})}
		l, end := run(t, audit.Config{Output: out, Queue: 2, WhenFull: audit.Drop, Telemetry: tel})
		for i := range 5 {
			if err := l.Admit(); err != nil {
				t.Error(err)
			}
			l.Record(t.Context(), event(i))
			synctest.Wait()
		}
		close(out.open)
		end()
		if got := strings.Join(out.images, " "); got != "fn-0 fn-1 fn-2" || !out.closed {
			t.Errorf("written %s, closed %t", got, out.closed)
		}
	})
	for _, want := range []string{
		`fn_audit_events_total{outcome="dropped"} 2`, `fn_audit_events_total{outcome="written"} 3`,
		`fn_audit_events_total{outcome="failed"} 0`, // from the start: alerts are about increases
	} {
		if !strings.Contains(scrape(), want) {
			t.Errorf("no %s in\n%s", want, scrape())
		}
	}
}

// TestAFullQueueRejects has an output that is slow, then fails, then works.
func TestAFullQueueRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output{open: make(chan struct{}), fails: 3}
		l, end := run(t, audit.Config{Output: out, Queue: 2, WhenFull: audit.Reject, Telemetry: telemetry.Discard()})
		for i := range 2 {
			if err := l.Admit(); err != nil {
				t.Error(err)
			}
			l.Record(t.Context(), event(i))
			synctest.Wait()
		}
		err := l.Admit()
		if after, ok := fault.RetryAfter(err); fault.Of(err) != fault.Unavailable || !ok || after <= 0 ||
			!strings.Contains(err.Error(), "the queue of the audit log is full") {
			t.Errorf("the third evaluation gets %v, want unavailable with a hint", err)
		}
		close(out.open)
		<-time.After(10 * time.Second)
		synctest.Wait()
		if err := l.Admit(); err != nil {
			t.Errorf("after all is written: %v", err)
		}
		l.Record(t.Context(), event(2))
		end()
		if got := strings.Join(out.images, " "); got != "fn-0 fn-1 fn-2" {
			t.Errorf("written %s, want each event", got)
		}
	})
}

// TestTheEndWaitsForAdmittedEvaluations has an evaluation that ends a second after the program begins to end.
func TestTheEndWaitsForAdmittedEvaluations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output{open: make(chan struct{})}
		close(out.open)
		l, end := run(t, audit.Config{Output: out, Queue: 2, WhenFull: audit.Reject, Telemetry: telemetry.Discard()})
		if err := l.Admit(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { l.Record(t.Context(), event(0)) })
		end()
		if got := strings.Join(out.images, " "); got != "fn-0" || !out.closed {
			t.Errorf("written %q, closed %t, want the event of the evaluation", got, out.closed)
		}
	})
}

// TestEventsAfterTheEndAreCounted has evaluations that end while the log does, and after it.
func TestEventsAfterTheEndAreCounted(t *testing.T) {
	const early, late = 200, 3
	tel, scrape := scrapetest.New(t)
	out := &output{open: make(chan struct{})}
	synctest.Test(t, func(t *testing.T) {
		close(out.open)
		l, end := run(t, audit.Config{Output: out, Queue: early + late, WhenFull: audit.Drop, Telemetry: tel})
		var evaluations sync.WaitGroup
		for i := range early {
			evaluations.Go(func() { l.Record(t.Context(), event(i)) })
		}
		end()
		evaluations.Wait()
		for i := range late {
			l.Record(t.Context(), event(early+i))
		}
	})
	written, dropped := len(out.images), early+late-len(out.images)
	if dropped < late {
		t.Errorf("%d events written, the last of them after the end", written)
	}
	for _, want := range []string{
		fmt.Sprintf(`fn_audit_events_total{outcome="dropped"} %d`+"\n", dropped), "fn_audit_queued 0\n",
	} {
		if !strings.Contains(scrape(), want) {
			t.Errorf("%d events written, and no %s in\n%s", written, want, scrape())
		}
	}
}

// TestTheEndIsBounded has an output that never writes.
func TestTheEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, end := run(t, audit.Config{
			Output: &output{open: make(chan struct{})}, Queue: 10, WhenFull: audit.Reject, Telemetry: telemetry.Discard(),
		})
		for i := range 3 {
			if err := l.Admit(); err != nil {
				t.Error(err)
			}
			l.Record(t.Context(), event(i))
		}
		began := time.Now()
		end()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// blocked is an output that knows no context, such as a pipe that is not read.
type blocked struct{ open chan struct{} }

func (b blocked) Write(context.Context, []audit.Event) error {
	<-b.open
	return nil
}

func (b blocked) Close() error {
	<-b.open
	return nil
}

// TestABlockedOutputDoesNotHoldUpTheEnd has one that does not return from Write, and one that does not from Close.
func TestABlockedOutputDoesNotHoldUpTheEnd(t *testing.T) {
	for _, events := range []int{0, 3} {
		for _, whenFull := range []string{audit.Drop, audit.Reject} {
			tel, scrape := scrapetest.New(t)
			synctest.Test(t, func(t *testing.T) {
				out := blocked{open: make(chan struct{})}
				l, err := audit.New(audit.Config{Output: out, Queue: 10, WhenFull: whenFull, Telemetry: tel})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- l.Run(ctx) }()
				for i := range events {
					if err := l.Admit(); err != nil {
						t.Error(err)
					}
					l.Record(t.Context(), event(i))
				}
				synctest.Wait()
				cancel()
				select {
				case err := <-ended:
					if err == nil || !strings.Contains(err.Error(), "does not end") {
						t.Errorf("%d events, %s: ended with %v, want an error about the output", events, whenFull, err)
					}
				case <-time.After(20 * time.Second):
					t.Errorf("%d events, %s: the log does not end", events, whenFull)
				}
				close(out.open)
				synctest.Wait()
			})
			want := fmt.Sprintf(`fn_audit_events_total{outcome="failed"} %d`+"\n", events)
			if metrics := scrape(); events > 0 && !strings.Contains(metrics, want) {
				t.Errorf("%s: no %s in %s", whenFull, want, metrics)
			}
		}
	}
}

// TestLines has an event with all fields, and one with few.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	content := audit.Describe([]byte("kind: ResourceList\n"))
	full := audit.Event{
		Time: time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC), TraceID: "t",
		Caller:    audit.Caller{ID: "spiffe://a/b", Kind: "certificate", Groups: []string{"g"}, Address: "10.0.0.1"},
		Image:     audit.Image{Given: "fn:v1", Name: "a.io/fn:v1", Digest: "sha256:x", Signers: []string{"release"}},
		Evaluator: "pod", Verdict: audit.Allowed, Rule: "r<1>", Input: content, Output: &content, Seconds: 0.5, Code: "ok",
	}
	if err := audit.Lines(&out).Write(t.Context(), []audit.Event{full, event(1)}); err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-11-23T01:02:03Z","trace_id":"t","caller":{"id":"spiffe://a/b","kind":"certificate",` +
		`"groups":["g"],"address":"10.0.0.1"},"image":{"given":"fn:v1","name":"a.io/fn:v1","digest":"sha256:x",` +
		`"signers":["release"]},"evaluator":"pod","verdict":"allow","rule":"r<1>","input":{"bytes":19,"sha256":"SUM"},` +
		`"output":{"bytes":19,"sha256":"SUM"},"duration_seconds":0.5,"code":"ok"}` + "\n" +
		`{"time":"0001-01-01T00:00:00Z","caller":{},"image":{"given":"fn-1"},"verdict":"none",` +
		`"input":{"bytes":0,"sha256":""},"duration_seconds":0,"code":"ok"}` + "\n"
	if got := out.String(); got != strings.ReplaceAll(want, "SUM", content.SHA256) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// halfWriter writes half of what it gets, the first time.
type halfWriter struct {
	bytes.Buffer
	failed bool
}

func (w *halfWriter) Write(p []byte) (int, error) {
	if w.failed {
		return w.Buffer.Write(p)
	}
	w.failed = true
	n, _ := w.Buffer.Write(p[:len(p)/2])
	return n, errors.New("disk full")
}

// TestATornLineTearsNoOther writes an event again of which a half was written.
func TestATornLineTearsNoOther(t *testing.T) {
	var w halfWriter
	out := audit.Lines(&w)
	if err := out.Write(t.Context(), []audit.Event{event(0)}); err == nil {
		t.Error("no error")
	}
	if err := out.Write(t.Context(), []audit.Event{event(0)}); err != nil {
		t.Error(err)
	}
	lines := strings.Split(w.String(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "fn-0") {
		t.Errorf("lines %q", lines)
	}
}

func TestExportNeedsAnExporter(t *testing.T) {
	t.Setenv("OTEL_LOGS_EXPORTER", "none")
	if _, err := audit.OpenOTLP(t.Context()); err == nil || !strings.Contains(err.Error(), "OTEL_LOGS_EXPORTER is none") {
		t.Errorf("got %v", err)
	}
	t.Setenv("OTEL_LOGS_EXPORTER", "carrier-pigeon")
	if _, err := audit.OpenOTLP(t.Context()); err == nil {
		t.Error("an exporter that is not there: no error")
	}
}
