// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

// exporter keeps records, and fails the first time.
type exporter struct {
	records []sdklog.Record
	calls   int
	closed  bool
}

func (e *exporter) Export(_ context.Context, records []sdklog.Record) error {
	if e.calls++; e.calls == 1 {
		return errors.New("the collector is away")
	}
	for _, r := range records {
		e.records = append(e.records, r.Clone())
	}
	return nil
}

func (e *exporter) Shutdown(context.Context) error {
	e.closed = true
	return nil
}

func (e *exporter) ForceFlush(context.Context) error { return nil }

// TestRecords exports events again after a failure.
func TestRecords(t *testing.T) {
	to := new(exporter)
	out := newOTLP(to)
	content := Describe([]byte("a"))
	events := []Event{
		{
			Time: time.Unix(1, 0), Caller: Caller{ID: "a", Groups: []string{"g"}},
			Image: Image{Given: "fn", Signers: []string{"a", "b"}}, Verdict: Denied, Rule: "r",
			Input: content, Code: "denied", Reason: "no",
		},
		{Image: Image{Given: "fn"}, Output: &content, Code: "ok"},
	}
	if err := out.Write(t.Context(), events); err == nil {
		t.Error("no error of the exporter")
	}
	if err := out.Write(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	if len(to.records) != 2 {
		t.Fatalf("%d records, want 2", len(to.records))
	}
	attributes := map[string]string{}
	to.records[0].WalkAttributes(func(kv log.KeyValue) bool {
		attributes[kv.Key] = kv.Value.String()
		return true
	})
	for key, want := range map[string]string{
		"caller.id": "a", "caller.groups": "[g]", "image.given": "fn", "image.signers": "[a b]",
		"verdict": "deny", "rule": "r",
		"input.bytes": "1", "input.sha256": content.SHA256, "code": "denied", "reason": "no",
	} {
		if attributes[key] != want {
			t.Errorf("%s is %q, want %q", key, attributes[key], want)
		}
	}
	if _, ok := attributes["output.bytes"]; ok || !to.records[0].Timestamp().Equal(time.Unix(1, 0)) ||
		to.records[0].EventName() != "evaluation" {
		t.Errorf("the record of a denial is %+v", to.records[0])
	}
	if err := out.Close(); err != nil || !to.closed {
		t.Errorf("closed %t, %v", to.closed, err)
	}
}
