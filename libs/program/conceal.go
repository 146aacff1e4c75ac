package program

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// conceal keeps the environment and the memory of this process from others of the same
// user, which functions are: there are credentials in one, and other callers' packages in
// the other. The kernel gives most of what is under /proc/PID to root then; it leaves lists
// of processes, such as that of children, readable for everybody. A program that is started
// from here is not concealed.
func conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep secrets from functions: %w", os.NewSyscallError("prctl", err))
	}
	return nil
}
