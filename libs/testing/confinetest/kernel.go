// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confinetest

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onThreadWithout calls the function start on a thread on which the given system call seems not to exist, as it
// does in the processes that the function creates. The thread exits afterwards.
func onThreadWithout(call uintptr, start func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked, so that Go destroys the thread with its goroutine
		err := concealCall(call)
		if err == nil {
			err = start()
		}
		result <- err
	}()
	return <-result
}

// concealCall loads a seccomp filter that makes the given system call seem not to exist for this thread.
func concealCall(call uintptr) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	instructions := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(call), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("load a seccomp filter: %w", errno)
	}
	return nil
}
