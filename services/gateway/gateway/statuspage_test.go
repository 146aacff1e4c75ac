// SPDX-License-Identifier: Apache-2.0

//go:build chromium

package gateway_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// catalog is before the names of functions.
const catalog = "ghcr.io/kptdev/krm-functions-catalog/"

// Functions of the gateways here: two local binaries, of which one fails, and one in a pod.
const (
	local, failing, inPod = catalog + "set-namespace:v0.4.5", catalog + "kubeconform:v0.1.1", catalog + "gatekeeper:v0.2.7"
)

// watched is a gateway whose status page is in a browser.
type watched struct {
	manager *leasetest.Manager
	page    string // its address
	callers evaluator.FunctionEvaluatorClient
	pod     string // the address of the function pod
}

// startWatched runs a gateway with a status page, with the functions above.
func startWatched(t *testing.T) *watched {
	t.Helper()
	dir := t.TempDir()
	conformance.Install(t, dir, "echo")
	conformance.Install(t, dir, "exit1")
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, StatusAddress: "127.0.0.1:0",
		Exec: gateway.ExecConfig{
			Config: filepath.Join(dir, "config.yaml"), Functions: dir,
		},
		Pod: gateway.PodConfig{IdleTimeout: time.Minute},
	}
	write(t, cfg.Exec.Config, fmt.Sprintf(
		"functions: [{function: echo, images: [%q]}, {function: exit1, images: [%q]}]", local, failing))
	w := &watched{
		manager: leasetest.NewManager(nil), pod: testpod.ServeFunctions(t, t.TempDir(), map[string]string{inPod: "echo"}),
	}
	listener, err := net.Listen("tcp", cfg.StatusAddress)
	if err != nil {
		t.Fatal(err)
	}
	w.page = listener.Addr().String()
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		component, err := gateway.New(cfg, gateway.Services{PodManager: w.manager}, frame)
		if err == nil {
			component.Endpoints[1].Listener = listener
		}
		return component, err
	})
	conn := servetest.Dial(t, address)
	w.callers = evaluator.NewFunctionEvaluatorClient(conn)
	return w
}

func (w *watched) evaluate(t *testing.T, image string) error {
	_, err := w.callers.EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{
		Image: image, ResourceList: []byte(conformance.List),
	})
	return err
}

// podName is the name of the function pod.
const podName = "gatekeeper-v027-1-0a1b2c3d"

// granted returns a lease on the function pod.
func (w *watched) granted() *lease.Granted {
	return &lease.Granted{Address: w.pod, Pod: podName, ColdStart: true, MaxMessageBytes: conformance.MaxMessageBytes}
}

// fleet returns pools with so many pods each. One pod of one pool starts.
func fleet(pools, pods int) []*podmanagerv1.Pool {
	var all []*podmanagerv1.Pool
	for i := range pools {
		pool := &podmanagerv1.Pool{
			Key: &podmanagerv1.PoolKey{
				Reference: fmt.Sprintf("registry.example/fns/function-%d:v1", i), Digest: digest(i),
			},
			Limits: &podmanagerv1.Pool_Limits{MaxConcurrency: 4},
		}
		for n := range pods {
			pool.Pods = append(pool.Pods, &podmanagerv1.Pod{
				Name: fmt.Sprintf("function-%d-v1-%d-0a1b2c3d", i, n), State: podmanagerv1.Pod_STATE_READY,
				Node:        fmt.Sprintf("worker-%d", n%7),
				CreateTime:  timestamppb.New(time.Now().Add(-time.Hour)),
				ReclaimTime: timestamppb.New(time.Now().Add(20 * time.Minute)),
			})
		}
		all = append(all, pool)
	}
	starting := all[0].GetPods()[pods-1]
	starting.State = podmanagerv1.Pod_STATE_STARTING
	starting.Phase = podmanagerv1.Phase_PHASE_PULLING
	starting.Reason = "Back-off pulling image: the registry answers 401 Unauthorized"
	return all
}

// digest returns the digest of a pool's image.
func digest(of int) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte{byte(of)})) }

// ownPool returns the pool of the function in a pod, with a pod in a state.
func ownPool(state podmanagerv1.Pod_State) *podmanagerv1.Pool {
	return &podmanagerv1.Pool{
		Key: &podmanagerv1.PoolKey{Reference: inPod, Digest: digest(100)}, Waiting: 1,
		Limits: &podmanagerv1.Pool_Limits{MaxConcurrency: 4},
		Pods: []*podmanagerv1.Pod{{
			Name: podName, State: state, Phase: podmanagerv1.Phase_PHASE_PULLING, Reason: "Pulling image",
			CreateTime: timestamppb.Now(),
		}},
	}
}

// TestBrowserShowsWhatHappens has a function fail and another one wait for its pod, and awaits each of it on the page.
func TestBrowserShowsWhatHappens(t *testing.T) {
	w := startWatched(t)
	created, ready := make(chan struct{}), make(chan struct{})
	w.manager.SetGrant(func(_ context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
		waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED, Reason: "500 of 500 pods are in use"})
		<-created
		w.manager.SetPools(ownPool(podmanagerv1.Pod_STATE_STARTING))
		waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_PULLING, Reason: "Pulling image"})
		<-ready
		w.manager.SetPools(ownPool(podmanagerv1.Pod_STATE_READY))
		return w.granted(), nil
	})
	b := browse(t, w.page)
	if err := w.evaluate(t, failing); err == nil {
		t.Fatal("a function that fails did not fail")
	}
	b.await("failures", "function\tinternal\tthe function failed with exit code 1")
	ended := make(chan error)
	go func() { ended <- w.evaluate(t, inPod) }()
	b.await("waiting", "gatekeeper:v0.2.7\t1\tqueue")
	b.await("waiting", "500 of 500 pods are in use")
	close(created)
	b.await("pools", podName+"\tstarting pulling: Pulling image")
	b.await("waiting", "gatekeeper:v0.2.7\t1\tpull")
	close(ready)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	b.await("pools", podName+"\tready")
	b.await("evaluations", podName+" cold start")
	b.await("waiting", "None.")
}

// TestBrowserWithManyPods uses the page of 500 pods with the keyboard, in a wide and in a narrow window.
func TestBrowserWithManyPods(t *testing.T) {
	w := startWatched(t)
	w.manager.SetPools(fleet(50, 10)...)
	failures := 3 // and one more in each window
	for range failures {
		_ = w.evaluate(t, failing)
	}
	for _, tc := range []struct {
		name, size string
		maxWidth   int
	}{{"wide", "1280,900", 1280}, {"narrow", "500,800", 500}} {
		t.Run(tc.name, func(t *testing.T) {
			failures++
			b := browse(t, w.page, "--window-size="+tc.size)
			// Of many pools, those with a problem are open.
			if got := b.do("report", ""); got.Open != 1 || got.Pods != 10 || got.Width > tc.maxWidth || got.Content > got.Width {
				t.Errorf("at first: %+v", got)
			}
			if got := b.do("key", "o"); got.Open != 50 || got.Pods != 200 || got.Content > got.Width {
				t.Errorf("all pools open: %+v", got)
			}
			if got := b.do("click", "#pools .all"); got.Pods != 500 || got.Content > got.Width {
				t.Errorf("all pools shown: %+v", got)
			}
			b.do("click", "details summary")
			if got := b.do("key", "r"); got.Open != 49 || got.Pods != 490 {
				t.Errorf("a pool closed before a refresh: %+v", got)
			}
			before := b.do("select", "details:nth-of-type(30) tr:nth-of-type(5) th")
			_ = w.evaluate(t, failing) // the page changes above what is selected, which stays in its place
			if got := b.do("key", "r"); !strings.HasPrefix(got.Selected, "function-") || got.Selected != before.Selected ||
				got.Scrolled < 1000 || math.Abs(got.Scrolled-before.Scrolled) > 100 {
				t.Errorf("selected and scrolled before a refresh: %+v, after it: %+v", before, got)
			}
			b.do("key", "p")
			if got := b.do("key", "r"); got.State != "paused" {
				t.Errorf("refreshed while it is paused: %+v", got)
			}
			if got := b.do("key", "/"); got.Focused != "filter" {
				t.Errorf("the key of the filter: %+v", got)
			}
			if got := b.do("type", "FUNCTION-1:"); got.Named != 1 || got.Pods != 10 {
				t.Errorf("one function of all tables: %+v", got)
			}
			// Its failures, which are equal, its evaluations and the function.
			if got := b.do("type", "kubeconform"); got.Named != 1+failures+1 || got.Pods != 0 {
				t.Errorf("another function: %+v", got)
			}
			if got := b.do("key", "Escape"); got.Focused != "" || got.Pods != 490 {
				t.Errorf("the end of the filter: %+v", got)
			}
		})
	}
}

// TestBrowserShowsAllEvaluationsOfATrace refreshes the page after evaluations of one trace, as of a package's pipeline.
func TestBrowserShowsAllEvaluationsOfATrace(t *testing.T) {
	w := startWatched(t)
	traced := metadata.AppendToOutgoingContext(t.Context(), "traceparent",
		"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	evaluate := func() {
		_, err := w.callers.EvaluateFunction(traced, &evaluator.EvaluateFunctionRequest{
			Image: local, ResourceList: []byte(conformance.List),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		evaluate()
	}
	b := browse(t, w.page)
	evaluate()
	b.do("key", "r") // this may only await an automatic refresh that began before the evaluation
	if got := b.do("key", "r"); got.Named != 1+5 {
		t.Errorf("%d rows are shown, want one of the function and five of its evaluations", got.Named)
	}
}

func TestBrowserInDarkMode(t *testing.T) {
	w := startWatched(t)
	light := browse(t, w.page).do("report", "")
	dark := browse(t, w.page, strings.Fields(darkMode)...).do("report", "")
	if light.Background != "rgb(255, 255, 255)" || dark.Background != "rgb(20, 24, 29)" {
		t.Errorf("background %q, in dark mode %q", light.Background, dark.Background)
	}
}

const darkMode = "--force-dark-mode --blink-settings=preferredColorScheme=0"
