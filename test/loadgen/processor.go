// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"time"
)

// processorTime returns the processor time that this process has used, without its child processes.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
