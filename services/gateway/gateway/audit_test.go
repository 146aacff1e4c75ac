// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// TestEachEvaluationHasItsEvent reads the file of an audit log after the gateway has ended.
func TestEachEvaluationHasItsEvent(t *testing.T) {
	dir := t.TempDir()
	config, audited := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "audit.jsonl")
	conformance.Install(t, dir, "echo")
	write(t, config, fmt.Sprintf("functions: [{function: echo, images: [%q, %q]}]", image("echo"), image("denied")))
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimePod},
		Policy: gateway.PolicyConfig{Deny: []string{"no=example.com/fn/denied"}},
		Audit:  gateway.AuditConfig{Output: audited, Queue: 100, WhenFull: "reject"},
		Exec:   gateway.ExecConfig{Config: config, Functions: dir, Queue: 10, Settings: function.Settings{Concurrency: 1}},
	}
	t.Run("evaluations", func(t *testing.T) { // at whose end the gateway ends
		c := newCaller(t, servetest.Start(t, func(frame program.Frame) (serve.Component, error) {
			return gateway.New(cfg, gateway.Services{}, frame)
		}))
		for _, name := range []string{"echo", "denied", "missing"} {
			_ = c.evaluate(t, image(name), "")
		}
		_ = c.evaluate(t, strings.Repeat("n", conformance.MaxMessageBytes/2), "") // which is no name
	})
	content, err := os.ReadFile(audited)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.SplitAfter(content, []byte("\n"))
	if last := whole[3]; len(last) > 8<<10 {
		t.Errorf("an event takes %d bytes, which callers choose", len(last))
	}
	content = bytes.Join(whole[:3], nil)
	var got []string
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		var e struct {
			Caller struct{ Address string }
			Image  struct{ Given, Name string }
			Input  struct {
				Bytes  int
				SHA256 string
			}
			Output                         *struct{ SHA256 string }
			Evaluator, Verdict, Rule, Code string
			Seconds                        float64 `json:"duration_seconds"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.Caller.Address != "127.0.0.1" || e.Input.Bytes == 0 || len(e.Input.SHA256) != 64 || e.Seconds <= 0 ||
			e.Image.Name != e.Image.Given {
			t.Errorf("the event is %s", lines.Text())
		}
		if e.Code == "ok" && (e.Output == nil || e.Output.SHA256 != e.Input.SHA256) {
			t.Errorf("the event is %s, want an output with the hash of the input", lines.Text())
		}
		got = append(got, strings.Join([]string{e.Image.Given, e.Evaluator, e.Verdict, e.Rule, e.Code}, " "))
	}
	want := image("echo") + " exec allow default ok\n" + image("denied") + "  deny no denied\n" +
		image("missing") + "  none  not_found"
	if strings.Join(got, "\n") != want {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if strings.Contains(string(content), "ResourceList") {
		t.Error("the audit log has contents")
	}
}

// TestAuditLogThatCannotBeOpened ends the start.
func TestAuditLogThatCannotBeOpened(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "audit.jsonl")
	cfg := gateway.Config{Audit: gateway.AuditConfig{Output: missing, Queue: 1}}
	cfg.DisableRuntimes = []string{gateway.RuntimeExec, gateway.RuntimePod}
	frame := program.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	_, err := gateway.New(cfg, gateway.Services{}, frame)
	if err == nil || !strings.Contains(err.Error(), "open the audit log") {
		t.Errorf("got %v", err)
	}
}
