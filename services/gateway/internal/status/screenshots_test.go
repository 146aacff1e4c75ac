// SPDX-License-Identifier: Apache-2.0

//go:build chromium

package status_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
)

var screenshots = flag.String("screenshots", "", "write screenshots of the status page to this directory")

// crowd returns the page of a gateway with n functions, and with trouble if there are more than one.
func crowd(n int) http.Handler {
	h, now := evalhistory.New(), time.Now()
	add := func(image string, e *gatewayv1.Evaluation) {
		e.TraceId = fmt.Sprintf("%032x", time.Since(now).Nanoseconds())
		e.Image = image
		e.Resolved = image
		e.StartTime = timestamppb.New(now.Add(-e.GetDuration().AsDuration() - time.Second))
		h.Add(image[strings.LastIndexByte(image, '/')+1:], e)
	}
	const catalog = "ghcr.io/kptdev/krm-functions-catalog/"
	for i := range n {
		image := fmt.Sprintf("%sfunction-%d:v0.4.%d", catalog, i, i%7)
		for range 1 + 40/(i+1) {
			add(image, &gatewayv1.Evaluation{
				Evaluator: "exec", Code: "ok", Duration: durationpb.New(time.Duration(3+i%17) * time.Millisecond), Attempts: 1,
				Phases: []*gatewayv1.EvaluationPhase{{
					Name: "run", Duration: durationpb.New(time.Duration(3+i%17) * time.Millisecond),
				}},
			})
		}
	}
	var waits active
	pools := fleet(n, 3)
	for i, pool := range pools {
		pool.Active = int32(i % 3)
		pool.Waiting = 0
		if i != 1 {
			pool.GetPods()[2].State = podmanagerv1.Pod_STATE_READY
			pool.GetPods()[2].Reason = ""
		}
	}
	if n > 1 {
		pools[1].Waiting = 12
		pools[1].LastFailure = "pull registry.example/fns/function-1:v1: 401 Unauthorized (check the pull secret)"
		for range 7 {
			add(catalog+"gatekeeper:v0.2.7", &gatewayv1.Evaluation{
				Code: "unavailable", Fault: "system", Reason: "no pod-manager answers: dial tcp 10.0.0.7:9448: connection refused",
				Duration: durationpb.New(40 * time.Millisecond),
			})
		}
		for range 3 {
			add(catalog+"kubeconform:v0.1.1", &gatewayv1.Evaluation{
				Code: "internal", Fault: "function", Reason: "the function failed with exit code 1", Evaluator: "exec", Attempts: 1,
				Duration: durationpb.New(900 * time.Millisecond), Phases: []*gatewayv1.EvaluationPhase{
					{Name: "queue", Duration: durationpb.New(300 * time.Millisecond)},
					{Name: "run", Offset: durationpb.New(300 * time.Millisecond), Duration: durationpb.New(600 * time.Millisecond)},
				},
			})
		}
		add("registry.example/fns/typo:v1", &gatewayv1.Evaluation{
			Code: "precondition", Fault: "caller", Reason: "the registry says: MANIFEST_UNKNOWN: no such tag", Attempts: 1,
		})
		waits = active{{
			Image: "registry.example/fns/function-1:v1", Phase: "pull", Count: 12, Longest: 65 * time.Second,
			Reason: "Back-off pulling image: 401 Unauthorized",
		}, evalmetrics.Waiting{Image: catalog + "function-2:v0.4.2", Phase: "queue", Count: 1, Longest: time.Second}}
	}
	cold := &gatewayv1.Evaluation{
		Evaluator: "pod", Pod: "gatekeeper-v027-1-0a1b2c3d", Code: "ok", Duration: durationpb.New(1800 * time.Millisecond),
		ColdStart: true, Attempts: 1,
	}
	for i, name := range []string{"resolve", "queue", "create", "schedule", "pull", "start", "connect", "run"} {
		cold.Phases = append(cold.Phases, &gatewayv1.EvaluationPhase{
			Name: name, Duration: durationpb.New(225 * time.Millisecond),
			Offset: durationpb.New(time.Duration(i) * 225 * time.Millisecond),
		})
	}
	add(catalog+"gatekeeper:v0.2.7", cold)
	return handler(h, poolsFunc(func() ([]*podmanagerv1.Pool, error) { return pools, nil }), waits...)
}

// TestScreenshots writes pictures of the page, if -screenshots names their directory. Chromium's windows are 500
// pixels wide or wider: the page is in a frame.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("without -screenshots")
	}
	for _, n := range []int{1, 43, 500} {
		page := crowd(n)
		mux := http.NewServeMux()
		mux.Handle("/page/", http.StripPrefix("/page", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			page.ServeHTTP(answer, r)
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			_, _ = w.Write(answer.Body.Bytes())
		})))
		mux.HandleFunc("/frame/{width}/{height}", func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `<!doctype html><html><meta name="color-scheme" content="light dark">`+
				`<body style="margin:0"><iframe src="/page/" style="border:0;width:%spx;height:%spx"></iframe>`,
				r.PathValue("width"), r.PathValue("height"))
		})
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		for _, width := range []int{380, 900, 1280} {
			for name, args := range map[string]string{
				"light": "", "dark": "--force-dark-mode --blink-settings=preferredColorScheme=0",
			} {
				file := filepath.Join(*screenshots, fmt.Sprintf("%d-%d-%s.png", n, width, name))
				const height = 1400
				cmd := exec.CommandContext(t.Context(), "chromium", append([]string{
					"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
					"--hide-scrollbars", "--user-data-dir=" + t.TempDir(), "--screenshot=" + file,
					fmt.Sprintf("--window-size=%d,%d", max(width, 500), height),
					fmt.Sprintf("%s/frame/%d/%d", server.URL, width, height),
				}, strings.Fields(args)...)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", file, err, out)
				}
			}
		}
	}
}
