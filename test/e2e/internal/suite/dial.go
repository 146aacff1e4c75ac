// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Dialer opens connections from inside a pod. It uses the network namespace of a process in the pod.
type Dialer struct{ Process }

// DialContext opens a TCP connection. The address must be numeric.
func (d Dialer) DialContext(ctx context.Context, address string) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		// A socket belongs to the network namespace of the thread that creates it. This thread changes its namespace. It
		// therefore stays locked, so that the runtime discards it at the end of the goroutine.
		runtime.LockOSThread()
		conn, err := d.dial(ctx, address)
		done <- dialled{conn, err}
	}()
	got := <-done
	return got.conn, got.err
}

func (d Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", d.PID))
	if err != nil {
		return nil, fmt.Errorf("find a pod's network: %w", err)
	}
	defer func() { _ = network.Close() }()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter a pod's network: %w", err)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}
