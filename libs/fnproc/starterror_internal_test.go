// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

func TestStartErrorOfExhaustedLimits(t *testing.T) {
	for cause, want := range map[syscall.Errno]fault.Class{
		syscall.EAGAIN: fault.Exhausted, // too many processes
		syscall.ENOMEM: fault.Exhausted, // no memory for the kernel's part of one
		syscall.EMFILE: fault.Exhausted, // no file for its pipes
		syscall.ENFILE: fault.Exhausted,
		syscall.ENOENT: fault.Internal, // it will not be there later either
	} {
		err := startError(Command{Path: "/fn"}, direct, &os.PathError{Op: "fork/exec", Path: "/fn", Err: cause})
		_, hint := fault.RetryAfter(err)
		if fault.Of(err) != want || hint != (want == fault.Exhausted) || !errors.Is(err, cause) {
			t.Errorf("%v: error %v of class %v, want %v", cause, err, fault.Of(err), want)
		}
	}
}
