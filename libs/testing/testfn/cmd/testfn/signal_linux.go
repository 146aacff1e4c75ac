// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"unsafe"
)

// restoreDefault restores the default action of a signal, which Go's runtime replaces by its own handler.
func restoreDefault(sig int) {
	var byDefault [32]byte // the kernel's struct sigaction; all zero is SIG_DFL
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION,
		uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
}
