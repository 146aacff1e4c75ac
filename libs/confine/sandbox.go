// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"encoding/binary"
	"fmt"
)

// SandboxFilter returns a seccomp program, in the format of seccomp(2), for functions that a launcher such as
// bubblewrap starts in separate namespaces. It allows sockets and signals, because they reach only processes in the
// same namespaces.
func SandboxFilter() ([]byte, error) {
	calls, err := kernel{abi: newestNeeded}.filteredCalls(true)
	if err != nil {
		return nil, fmt.Errorf("make the seccomp filter of sandboxes: %w", err)
	}
	f, err := newFilter(calls)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, i := range f.program {
		out = binary.NativeEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out, nil
}
