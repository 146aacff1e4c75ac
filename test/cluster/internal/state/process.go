// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process identifies a process, as distinct from a later process with the same id.
type Process struct {
	PID int `json:"pid"`
	// Started is the process's start in clock ticks since the machine's, and Boot identifies that
	// start: files outlast it, and numbers and ticks are used again.
	Started string `json:"started"`
	Boot    string `json:"boot"`
}

// Find returns the process that has the number now. A process that has exited does not count, even
// if its parent has not waited for it.
func Find(pid int) (Process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	started, err := startTime(string(stat))
	if err != nil {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return Process{PID: pid, Started: started, Boot: strings.TrimSpace(string(boot))}, nil
}

// startTime is field 22 of /proc/PID/stat. Field 2, the program's name, is in parentheses and may
// contain anything; field 3 is the process's state.
func startTime(stat string) (string, error) {
	const state, started = 0, 19 // The first after the name is field 3.
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= started {
		return "", fmt.Errorf("unexpected /proc stat line %q", stat)
	}
	if strings.ContainsAny(fields[state], "ZX") {
		return "", errors.New("it has ended")
	}
	return fields[started], nil
}

// Alive reports whether the very same process still exists.
func (p Process) Alive() bool {
	now, err := Find(p.PID)
	return err == nil && now == p
}

// Kill kills the process and waits until it has exited. A process that has exited already, or whose id now belongs to
// another process, is left alone.
func (p Process) Kill(ctx context.Context) error {
	if !p.Alive() {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return nil // already exited
	}
	defer unix.Close(fd)
	// The descriptor keeps referring to the same process, so the second check is reliable.
	if !p.Alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	return p.wait(ctx, fd)
}

func (p Process) wait(ctx context.Context, fd int) error {
	for ctx.Err() == nil {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
			int((100 * time.Millisecond).Milliseconds()))
		if ready > 0 && err == nil {
			return nil
		}
	}
	return fmt.Errorf("wait for process %d to end: %w", p.PID, ctx.Err())
}
