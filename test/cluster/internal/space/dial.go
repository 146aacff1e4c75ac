// SPDX-License-Identifier: Apache-2.0

package space

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Dialer opens connections in the network namespace of another process.
type Dialer struct {
	PID int
}

// DialContext connects like [net.Dialer.DialContext]. The address must be numeric.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", d.PID))
	if err != nil {
		return nil, fmt.Errorf("find the cluster's network: %w", err)
	}
	defer theirs.Close()
	// Stay on this thread, because a socket belongs to the network namespace of the thread that creates it.
	runtime.LockOSThread()
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("find the own network: %w", err)
	}
	defer ours.Close()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter the cluster's network: %w", err)
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if back := unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET); back == nil {
		// The thread is back in its own namespace, so that other goroutines can use it. After an error, the thread stays
		// locked, and the runtime ends it together with the goroutine.
		runtime.UnlockOSThread()
	}
	return connection, err
}
