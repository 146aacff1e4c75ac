// SPDX-License-Identifier: Apache-2.0

//go:build tmux

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
)

// breakable is the status of a gateway with many functions, which a test can break.
type breakable struct {
	gatewayStatus

	broken atomic.Bool
}

func (s *breakable) GetStatus(
	ctx context.Context, req *gatewayv1.GetStatusRequest,
) (*gatewayv1.GetStatusResponse, error) {
	if s.broken.Load() {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New(strings.Repeat("the gateway is broken ", 20)))
	}
	status, err := s.gatewayStatus.GetStatus(ctx, req)
	for i := range 60 {
		status.Functions = append(status.Functions, &gatewayv1.GetStatusResponse_Function{Image: fmt.Sprint("fn-", i, ":v1")})
	}
	status.Waiting = []*gatewayv1.GetStatusResponse_Waiting{{
		Image: "slow:v1", Phase: "queue", Count: 3, Longest: durationpb.New(0),
		Reason: strings.Repeat("all pods are busy ", 20),
	}}
	return status, err
}

// silent is a pod-manager that lists no pools once it is broken.
type silent struct {
	*leasetest.Manager

	broken *atomic.Bool
}

func (p silent) ListPools(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	if p.broken.Load() {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New(strings.Repeat("no pod-manager answers ", 20)))
	}
	return p.Manager.ListPools(ctx, req)
}

// TestScreensOfTop follows a gateway on small terminals, while its pod-manager and then the gateway itself break.
// The first line stays where it is: no line is too long or too many.
func TestScreensOfTop(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {60, 14}} {
		t.Run(strconv.Itoa(size[0]), func(t *testing.T) {
			t.Parallel()
			pods, s := silent{leasetest.NewManager(nil), new(atomic.Bool)}, new(breakable)
			address := fntest.Gateway{}.Serve(t, fntest.Status(s), fntest.Pods(pods))
			//nolint:forbidigo // where this test's fnctl is
			env := []string{"FNCTL_ADDRESS=" + address, "PATH=" + os.Getenv("PATH")}
			term := open(t, t.TempDir(), size[0], size[1], env, "fnctl top --interval=100ms")
			shows := func(texts ...string) {
				t.Helper()
				for _, text := range texts {
					if screen := term.await(text); !strings.HasPrefix(screen, "gateway gateway-0, version v9") {
						t.Errorf("the first line is lost:\n%s", screen)
					}
				}
			}
			shows("slow:v1  queue for 0s: all pods are busy", "LAST FAILURES HERE", "more")
			pods.broken.Store(true)
			shows("the gateway cannot reach the pod-manager (no pod-manager", "LAST FAILURES HERE")
			s.broken.Store(true)
			shows("the gateway could not answer (unavailable: the gateway", "LAST FAILURES HERE")
			s.broken.Store(false)
			pods.broken.Store(false)
			shows("here, last minute: 2.50 evals/s")
			term.tmux("send-keys", "C-c")
			term.await("status 0")
		})
	}
}
