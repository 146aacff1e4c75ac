package rpcclient

import (
	"context"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
)

// swallowed dials an address that never answers. The error is that of the dialer, or of
// the socket, whichever notices first.
func swallowed(noticed error) dial {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: noticed}
	}
}

func TestSwallowedConnections(t *testing.T) {
	const patiently = 10*dialTimeout + (50+100+200+400+800+4*1000)*time.Millisecond
	tests := map[string]struct {
		reason   string
		noticed  error
		deadline time.Duration
		code     connect.Code
		takes    time.Duration
	}{
		"patient caller":        {"nobody's deadline has passed: the call is made again, for a while", context.DeadlineExceeded, time.Minute, connect.CodeUnavailable, patiently},
		"noticed by the socket": {"it is the same", os.ErrDeadlineExceeded, time.Minute, connect.CodeUnavailable, patiently},
		"impatient caller":      {"this time it is the caller's", context.DeadlineExceeded, dialTimeout / 2, connect.CodeDeadlineExceeded, dialTimeout / 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &http.Transport{DialContext: unmistakable(swallowed(tc.noticed))}
				client := connect.NewClient[emptypb.Empty, emptypb.Empty](&http.Client{Transport: transport}, "http://service/test", Patient())
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				defer cancel()
				begin := time.Now()
				_, err := client.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
				if connect.CodeOf(err) != tc.code || time.Since(begin) != tc.takes {
					t.Errorf("got %v after %s, want %v after %s: %s", err, time.Since(begin), tc.code, tc.takes, tc.reason)
				}
				<-time.After(2 * dialTimeout) // a dial that nobody waits for any more ends too
			})
		})
	}
}
