// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// calls makes n calls, one a second, and returns which replica answered each and how long it took.
func (c *caller) calls(t *testing.T, n int) (from []string, took []time.Duration) {
	t.Helper()
	for range n {
		begin := time.Now()
		resp, err := c.call.CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{}))
		if err != nil {
			t.Fatal(err)
		}
		from, took = append(from, resp.Msg.GetValue()), append(took, time.Since(begin))
		<-time.After(time.Second)
	}
	return from, took
}

func name(_ context.Context, address string) (string, error) { return address, nil }

// count returns how many are equal to x.
func count(all []string, x string) int {
	return len(all) - len(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == x }))
}

func TestReplicasAreCalledInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		addresses := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
		for _, a := range addresses {
			serveAt(t, &network, a, name)
		}
		from, _ := testClient(t, network.Dial, addresses...).calls(t, 30)
		for _, a := range addresses {
			if n := count(from, a); n != 10 {
				t.Errorf("%s answered %d calls of 30", a, n)
			}
		}
	})
}

func TestSilentReplicaDelaysOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		serveAt(t, &network, "10.0.0.1", name)
		silent := serveAt(t, &network, "10.0.0.2", name)
		client := testClient(t, network.Dial, "10.0.0.1", "10.0.0.2")
		client.calls(t, 4)
		silent.SetSilent(true)
		from, took := client.calls(t, 30)
		slow := slices.DeleteFunc(took, func(d time.Duration) bool { return d == 0 })
		if count(from, "10.0.0.2") > 0 || len(slow) != 1 || slow[0] > 2*time.Second {
			t.Errorf("calls were answered by %v; slow ones took %v", from, slow)
		}
		silent.SetSilent(false)
		<-time.After(3 * time.Second)
		if from, _ := client.calls(t, 10); count(from, "10.0.0.2") != 5 {
			t.Errorf("calls were answered by %v once both answer", from)
		}
	})
}

// TestCallersSayWhichErrorsMeanSilence has callers whose errors Call cannot judge by itself.
func TestCallersSayWhichErrorsMeanSilence(t *testing.T) {
	lost, failed := errors.New("lost"), errors.New("failed")
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		host := serveAt(t, &network, "10.0.0.1", name)
		client, err := New("http://service:9449", nil, telemetry.Discard(), OverNetwork(network.Dial,
			func(context.Context, string) ([]string, error) { return []string{"10.0.0.1"}, nil }))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		replicas, err := client.Replicas(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		host.SetSilent(true) // so that a silent replica stays silent
		for _, want := range []error{failed, lost} {
			isLost := func(err error) bool { return errors.Is(err, lost) }
			err := replicas[0].Call(t.Context(), ProbeTimeout, isLost,
				func(context.Context, func()) error { return want })
			if silent := replicas[0].Silent(); !errors.Is(err, want) || silent != errors.Is(want, lost) {
				t.Errorf("%v: got %v, the replica counts as silent: %v", want, err, silent)
			}
		}
	})
}

// TestSlowAnswerIsAwaited: registries take as long as they take.
func TestSlowAnswerIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		slow := func(_ context.Context, address string) (string, error) {
			<-time.After(20 * time.Second)
			return address, nil
		}
		serveAt(t, &network, "10.0.0.1", slow)
		serveAt(t, &network, "10.0.0.2", slow)
		client := testClient(t, network.Dial, "10.0.0.1", "10.0.0.2")
		if _, took := client.calls(t, 1); client.tried.Load() != 1 || took[0] != 20*time.Second {
			t.Errorf("tried %d times in %v", client.tried.Load(), took)
		}
	})
}

// TestAddressesStayWhileNoneIsFound: name servers fail, or no replica is ready for a while.
func TestAddressesStayWhileNoneIsFound(t *testing.T) {
	for reason, err := range map[string]error{"no replica is ready": nil, "no name server": errors.New("no such host")} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network pipenet.Network
				serveAt(t, &network, "10.0.0.1", name)
				var gone atomic.Bool
				client := testClientOf(t, network.Dial, func(context.Context, string) ([]string, error) {
					if gone.Load() {
						return nil, err
					}
					return []string{"10.0.0.1"}, nil
				})
				client.calls(t, 1)
				gone.Store(true)
				<-time.After(time.Hour)
				if _, took := client.calls(t, 30); slices.Max(took) > 0 {
					t.Errorf("calls took %v", took)
				}
			})
		})
	}
}

// TestServiceOfOneAddress: behind the address of a Service, a new connection leads to another replica.
func TestServiceOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		silent := serveAt(t, &network, "10.0.0.1", func(context.Context, string) (string, error) { return "first", nil })
		client := testClient(t, network.Dial, "10.0.0.1")
		client.calls(t, 2)
		silent.SetSilent(true)
		serveAt(t, &network, "10.0.0.1", func(context.Context, string) (string, error) { return "second", nil })
		from, took := client.calls(t, 3)
		if !slices.Equal(from, []string{"second", "second", "second"}) || took[0] > 3*time.Second || took[1] > 0 {
			t.Errorf("calls were answered by %v in %v", from, took)
		}
	})
}
