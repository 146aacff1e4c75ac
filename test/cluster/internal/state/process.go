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

// Process identifies a process. The start time distinguishes the process from a later process with the same ID.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time of the process, in clock ticks since the machine's boot. Boot is the kernel's ID of this
	// boot. It is necessary because another process may have the same ID and start time after a reboot.
	Started string `json:"started"`
	Boot    string `json:"boot"`
}

// Find returns the running process with the given ID. It returns an error if the process has exited or is a zombie.
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

// startTime returns the process's start time, which is field 22 of /proc/PID/stat. If field 3, the state, shows that
// the process has exited, startTime returns an error. It searches for the last parenthesis, because the name in
// parentheses may contain any characters.
func startTime(stat string) (string, error) {
	const state, started = 0, 19 // indexes after the name; field 3 is the first
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= started {
		return "", fmt.Errorf("unexpected /proc stat line %q", stat)
	}
	if strings.ContainsAny(fields[state], "ZX") {
		return "", errors.New("it has ended")
	}
	return fields[started], nil
}

// Alive reports whether this process still runs. It returns false if another process has reused the ID.
func (p Process) Alive() bool {
	now, err := Find(p.PID)
	return err == nil && now == p
}

// Kill kills the process and waits until it has exited. If the process has exited already, Kill does nothing, even
// if another process has reused its ID.
func (p Process) Kill(ctx context.Context) error {
	if !p.Alive() {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return nil // already exited
	}
	defer unix.Close(fd)
	// If the process exited before PidfdOpen, the descriptor may refer to another process with the same ID.
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
