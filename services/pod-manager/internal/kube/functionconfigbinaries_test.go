// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
)

// withBinary returns an object with a binary, beside pods with a time to live.
func withBinary(name, ttl string) *unstructured.Unstructured {
	u := functionConfig(name, ttl)
	_ = unstructured.SetNestedMap(u.Object, map[string]any{"tags": []any{"v1"}, "path": name}, "spec", "binaryExecutor")
	return u
}

// after waits in the time of the test's bubble.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time of the test's bubble
	synctest.Wait()
}

// says has another replica write an error into a status.
func (p *porch) says(t *testing.T, name, text string) {
	t.Helper()
	u := p.get(t, name)
	_ = unstructured.SetNestedField(u.Object, text, "status", "error")
	if _, err := p.functionConfigs().Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestStatusesWaitForReportsOfGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(withBinary("a", "1m"), functionConfig("pods", "1m"))
		p.run(t)
		after(time.Second)
		if generation, _ := p.status(t, "pods"); generation != 1 {
			t.Error("an object without a binary waits for gateways")
		}
		if generation, _ := p.status(t, "a"); generation != 0 {
			t.Error("the status says that a binary can be used before any gateway could report")
		}
		p.touchOther(t)
		after(1500 * time.Millisecond)
		if generation, text := p.status(t, "a"); generation != 1 || text != "" {
			t.Errorf("where no gateway reports, the status is %d %q", generation, text)
		}
	})
}

// touchOther changes another object: each is compiled again.
func (p *porch) touchOther(t *testing.T) {
	t.Helper()
	p.change(t, "pods", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{functionconfig.SettingsAnnotation: `{"maxQueue": 3}`})
	})
}

func TestReportsOfGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(withBinary("a", "1m"))
		p.run(t)
		expect := func(when string, generation int64, problem string) {
			t.Helper()
			after(5 * time.Second)
			if g, text := p.status(t, "a"); g != generation || text != problem {
				t.Errorf("%s, the status is %d %q, want %d %q", when, g, text, generation, problem)
			}
		}
		const missing = "gateway: missing"
		p.ReportBinaries(map[string]string{"a": missing})
		expect("with a report", 0, "function-runner: "+missing)
		p.ReportBinaries(nil)
		expect("when the gateway has left", 0, "function-runner: "+missing)
		p.ReportBinaries(map[string]string{})
		expect("with a binary that is there now", 1, "")
		p.ReportBinaries(nil)
		expect("when that gateway has left", 1, "")
		if n := p.patches(); n != 2 {
			t.Errorf("%d patches, want one for each change", n)
		}
	})
}

// TestReportsToOtherReplicasAreLeft has a replica to which no gateway is connected.
func TestReportsToOtherReplicasAreLeft(t *testing.T) {
	tests := map[string]struct{ reason, ttl, written string }{
		"valid":  {"what a gateway has reported stays", "1m", "function-runner: gateway: missing"},
		"broken": {"with what both replicas find", "1s", "PROBLEM; gateway: missing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPorch(withBinary("a", tc.ttl), withBinary("broken", "1s"), functionConfig("pods", "1m"))
				p.run(t)
				after(3 * time.Second)
				_, problem := p.status(t, "broken")
				written := strings.Replace(tc.written, "PROBLEM", problem, 1)
				p.change(t, "a", func(*unstructured.Unstructured) {})
				p.says(t, "a", written)
				p.touchOther(t)
				after(time.Hour)
				if generation, text := p.status(t, "a"); generation == 2 || text != written {
					t.Errorf("the status is %d %q, want %q: %s", generation, text, written, tc.reason)
				}
			})
		})
	}
}

func TestAnErrorWithoutReportIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(withBinary("a", "1s"))
		p.run(t)
		p.says(t, "a", "function-runner: gateway: missing")
		after(5 * time.Second)
		if _, text := p.status(t, "a"); !strings.HasPrefix(text, "function-runner: spec.podExecutor.timeToLive") {
			t.Errorf("the status is %q", text)
		}
	})
}
