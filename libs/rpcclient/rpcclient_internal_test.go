// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// swallowed dials an address that never answers. The error comes from the dialer or from the
// socket, whichever times out first.
func swallowed(noticed error) dial {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: noticed}
	}
}

func TestSwallowedConnections(t *testing.T) {
	const retryUnreached = 10*dialTimeout + (50+100+200+400+800+4*1000)*time.Millisecond
	tests := map[string]struct {
		reason   string
		noticed  error
		deadline time.Duration
		code     connect.Code
		takes    time.Duration
	}{
		"late deadline": {
			"no deadline of the caller has passed: the call is retried, for a while",
			context.DeadlineExceeded, time.Minute, connect.CodeUnavailable, retryUnreached,
		},
		"noticed by the socket": {
			"it is the same", os.ErrDeadlineExceeded, time.Minute, connect.CodeUnavailable,
			retryUnreached,
		},
		"early deadline": {
			"this time it is the deadline of the caller", context.DeadlineExceeded, dialTimeout / 2,
			connect.CodeDeadlineExceeded, dialTimeout / 2,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := testClient(t, swallowed(tc.noticed), "10.0.0.1")
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				defer cancel()
				begin := time.Now()
				_, err := client.call.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
				if connect.CodeOf(err) != tc.code || time.Since(begin) != tc.takes {
					t.Errorf("got %v after %s, want %v after %s: %s", err, time.Since(begin), tc.code, tc.takes, tc.reason)
				}
				<-time.After(2 * dialTimeout) // an abandoned dial ends too
			})
		})
	}
}

// TestCallOnADeadConnectionEnds: without pings it would wait until its deadline, or for ever.
func TestCallOnADeadConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		host := serveAt(t, &network, "10.0.0.1", func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		client, err := New("http://10.0.0.1:9449", nil, telemetry.Discard(), OverNetwork(network.Dial, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		call := connect.NewClient[emptypb.Empty, wrapperspb.StringValue](client.HTTP, "http://10.0.0.1:9449/test",
			client.Options...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(time.Second, func() { host.SetSilent(true) })
		begin := time.Now()
		_, err = call.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
		if took := time.Since(begin); err == nil || took > time.Second+2*(pingAfter+pingTimeout) {
			t.Errorf("the call ended with %v after %v, want an error soon after %v", err, took, pingAfter+pingTimeout)
		}
		host.Kill()
	})
}
