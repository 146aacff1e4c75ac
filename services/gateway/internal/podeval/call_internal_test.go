// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

func TestNameUnknown(t *testing.T) {
	tests := map[string]struct {
		cause  error
		want   bool
		reason string
	}{
		"slow name server": {
			&net.DNSError{Err: "i/o timeout", Name: "pod.svc", IsTimeout: true}, true,
			"the pod has not even been asked",
		},
		"no such name": {
			&net.DNSError{Err: "no such host", Name: "pod.svc", IsNotFound: true}, true,
			"a Service that was deleted is made again",
		},
		"refused": {syscall.ECONNREFUSED, false, "the pod is gone, most likely"},
		"silence": {syscall.ETIMEDOUT, false, "the node is gone, most likely"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("no connection: %w", &net.OpError{Op: "dial", Net: "tcp", Err: tc.cause})
			if got := nameUnknown(err); got != tc.want {
				t.Errorf("%v: %t, want %t: %s", err, got, tc.want, tc.reason)
			}
		})
	}
}

func TestConnectTimeout(t *testing.T) {
	if got := connectTimeout(10*time.Second, true); got != 10*time.Second {
		t.Errorf("a new pod has %v to be connected", got)
	}
	if got := connectTimeout(10*time.Second, false); got != 2*time.Second {
		t.Errorf("a pod that served before has %v to be connected: one that refuses is gone, most likely", got)
	}
}
