// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filter is a seccomp program that can be loaded into the kernel.
type filter struct{ program []unix.SockFilter }

// Offsets of fields in struct seccomp_data, which describes a system call. An argument has 64 bits, but the kernel uses
// only the lower 32 bits of an int. The filter therefore reads only these bits. On little-endian machines such as amd64
// and arm64, they begin at the offset of the argument.
const (
	numberOffset    = 0
	archOffset      = 4
	argumentsOffset = 16
)

// lastReviewed is the highest system call number that our rules consider: file_setattr of Linux 6.17. All calls with
// higher numbers fail with "not implemented", so that programs use older calls instead. They include amd64 calls with
// 32-bit pointers (x32).
const lastReviewed = 469

var allowed = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// newFilter returns a filter that allows all system calls except the given calls. When the kernel loads a filter, it
// runs the filter once for every system call number. The filter therefore finds a call by binary search. With
// sequential comparisons, loading would take three times as long as starting a thread.
func newFilter(calls []call) (*filter, error) {
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.number, b.number) })
	native := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	program := []bpf.Instruction{
		// System calls of another architecture have different numbers than in our rules, so the filter kills the process.
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: native, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: numberOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastReviewed, SkipTrue: 1},
		notImplemented,
	}
	raw, err := bpf.Assemble(append(program, searchCalls(calls)...))
	if err != nil {
		return nil, fmt.Errorf("assemble the seccomp filter: %w", err)
	}
	f := &filter{program: make([]unix.SockFilter, 0, len(raw))}
	for _, i := range raw {
		f.program = append(f.program, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	return f, nil
}

// maxRun is the maximum number of calls that the filter compares sequentially instead of by binary search.
const maxRun = 8

// searchCalls returns instructions that search for the current call in calls, and then allow or forbid it. The calls
// must be sorted.
func searchCalls(calls []call) []bpf.Instruction {
	if len(calls) <= maxRun {
		return compareCalls(calls)
	}
	middle := len(calls) / 2
	lower, higher := searchCalls(calls[:middle]), searchCalls(calls[middle:])
	return slices.Concat([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: calls[middle].number, SkipTrue: 1},
		// We use an unconditional jump, because a conditional jump of BPF skips at most 255 instructions.
		bpf.Jump{Skip: uint32(len(lower))}, //nolint:gosec // a program has at most 4,096 instructions
	}, lower, higher)
}

func compareCalls(calls []call) (program []bpf.Instruction) {
	for _, c := range calls {
		decision := c.instructions()
		other := uint8(len(decision)) //nolint:gosec // no call has 256 instructions
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.number, SkipTrue: other})
		program = append(program, decision...)
	}
	return append(program, allowed)
}

// call is a system call that the filter forbids, either always or with some arguments.
type call struct {
	name   string
	number uint32
	answer bpf.RetConstant
	// cases describes the forbidden arguments. If cases is empty, the call is forbidden with any arguments.
	cases []match
}

// match is a set of conditions on the arguments of a call. A call matches if all conditions are true.
type match []condition

// condition compares the lower half of an argument of the call with a value.
type condition struct {
	argument uint32
	test     bpf.JumpTest
	value    uint32
}

// instructions returns the part of the filter that forbids or allows this call, depending on its arguments.
func (c call) instructions() (program []bpf.Instruction) {
	if len(c.cases) == 0 {
		return []bpf.Instruction{c.answer}
	}
	for _, match := range c.cases {
		for i, condition := range match {
			toEnd := uint8(2*(len(match)-i) - 1) //nolint:gosec // a case has few conditions
			program = append(program,
				bpf.LoadAbsolute{Off: argumentsOffset + 8*condition.argument, Size: 4},
				bpf.JumpIf{Cond: condition.test, Val: condition.value, SkipFalse: toEnd})
		}
		program = append(program, c.answer)
	}
	return append(program, allowed)
}

// allowAll returns a filter that allows every call. We load this filter to test whether the kernel supports filters.
func allowAll() *filter {
	return &filter{program: []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}}
}

// loadFilter applies the filter to the calling thread. A nil filter does nothing.
func (f *filter) loadFilter() error {
	if f == nil {
		return nil
	}
	// This flag keeps kernels before 5.16 from enabling mitigations against speculation attacks, which slow down processes
	// with a filter. Functions do not need the mitigations, because they run no untrusted code that could read their
	// secrets.
	const flags = unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	length := uint16(len(f.program)) //nolint:gosec // bounded by bpf.Assemble
	program := unix.SockFprog{Len: length, Filter: &f.program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&program))) //nolint:gosec // there is no other way to pass it
	if errno != 0 {
		return errno
	}
	return nil
}

// SandboxFilter returns a seccomp program, in the format of seccomp(2), for functions that a launcher such as
// bubblewrap starts in separate namespaces. The filter allows sockets and signals, because they reach only processes
// in the same namespaces.
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
