// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// component returns one of the cluster's own programs.
func component(t testing.TB, name string) bed.Component {
	t.Helper()
	s.Registry(t, "open") // fails without a test bed
	return s.Bed.Component(name)
}

func containerdRestarted(t *testing.T, sys *system) { restarted(t, sys, "containerd") }
func kubeletRestarted(t *testing.T, sys *system)    { restarted(t, sys, "kubelet") }

// restarted: running pods stay where they are, and starting pods take a little longer.
func restarted(t *testing.T, sys *system, name string) {
	t.Helper()
	f, cold := sys.sleeper(t, name), sys.sleeper(t, name+"-cold")
	f.succeeds(t, "before")
	before := f.pod(t)
	wait := f.start(t, long)
	if err := component(t, name).Restart(suite.Context(t)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	cold.succeeds(t, "cold during the restart")
	t.Logf("a cold start during the restart took %v", time.Since(start).Round(time.Millisecond))
	if err := wait(); err != nil {
		t.Errorf("the evaluation during the restart: %v", err)
	}
	f.succeeds(t, "after the restart")
	if after := f.pod(t); after.UID != before.UID {
		t.Error("the pod was replaced")
	}
}

// outage is the time for which the API server is gone. For its first half it only does not answer.
const outage = 30 * time.Second

// apiServerGone: warm evaluations are served, and cold ones get the reason for their failure.
func apiServerGone(t *testing.T, sys *system) {
	warm, first, second := sys.sleeper(t, "outage"), sys.sleeper(t, "outage-hangs"), sys.sleeper(t, "outage-gone")
	warm.succeeds(t, "before")
	before, ctx, api := warm.pod(t), suite.Context(t), component(t, "kube-apiserver")
	t.Cleanup(func() { _ = api.Start(context.WithoutCancel(ctx)) }) // it runs, unless the test failed
	over := make(chan struct{})
	var load errgroup.Group
	evaluations := 0
	load.Go(func() error {
		for ; ; evaluations++ {
			select {
			case <-over:
				return nil
			default:
			}
			if err := warm.evaluateWithin(ctx, outage, 10*time.Millisecond); err != nil { // the API's return is too late
				return err
			}
		}
	})
	if err := api.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	half := time.After(outage / 2)
	first.fails(t, codes.Unavailable, "the Kubernetes API cannot do it now")
	<-half
	if err := api.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	half = time.After(outage / 2)
	second.fails(t, codes.Unavailable, "the Kubernetes API cannot do it now", "connection refused")
	<-half
	if err := api.Start(ctx); err != nil {
		t.Fatal(err)
	}
	noticeAPIServer(t)
	first.awaitSuccess(t)
	second.awaitSuccess(t)
	close(over)
	if err := load.Wait(); err != nil {
		t.Errorf("a warm evaluation failed after %d: %v", evaluations, err)
	}
	t.Logf("%d warm evaluations", evaluations)
	if after := warm.pod(t); after.UID != before.UID {
		t.Error("the warm pod was replaced")
	}
}

// noticeAPIServer restarts the cluster's programs that a pod needs: they would notice up to a
// minute later that the API server has returned.
func noticeAPIServer(t *testing.T) {
	t.Helper()
	var restarts errgroup.Group
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns"} {
		restarts.Go(func() error { return component(t, name).Restart(suite.Context(t)) })
	}
	if err := restarts.Wait(); err != nil {
		t.Fatal(err)
	}
}
