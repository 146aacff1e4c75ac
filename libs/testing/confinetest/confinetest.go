// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package confinetest tests the start of a program on kernels that lack a feature for confining functions. Depending
// on the configuration, the program must start without the feature or refuse to start.
package confinetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// Program describes the program under test. It must serve immediately, without waiting for other services.
type Program struct {
	Path string
	Args []string
	Env  []string
	// Flags is true if the program's settings are flags instead of environment variables.
	Flags bool
}

// startTimeout limits the time until the program has started or exited. It is long enough for a busy machine.
const startTimeout = time.Minute

// Run tests the program on a kernel without Landlock and on a kernel without seccomp filters. With
// FNR_CONFINE=require, the program must exit and name the missing feature. With best-effort, it must start, and its
// log must name the missing feature.
func Run(t *testing.T, program Program) {
	t.Helper()
	tests := map[string]struct {
		call uintptr // a system call that is missing from the kernel
		want string
	}{
		"Landlock": {unix.SYS_LANDLOCK_CREATE_RULESET, "Landlock (Linux 5.13)"},
		"seccomp":  {unix.SYS_SECCOMP, "seccomp filters"},
	}
	for name, tc := range tests {
		t.Run("require without "+name, func(t *testing.T) {
			log, ended := program.startAt(t, "require", tc.call)
			if exit := ended(); exit.Success() || exit.Signaled() {
				t.Errorf("the program ended with %v, want an exit code", exit)
			}
			if !strings.Contains(log, tc.want) || !strings.Contains(log, "set FNR_CONFINE=best-effort") {
				t.Errorf("the program says\n%s\nwant that the kernel lacks %q, and what to do", log, tc.want)
			}
		})
		t.Run("best effort without "+name, func(t *testing.T) {
			log, ended := program.startAt(t, "best-effort", tc.call)
			if exit := ended(); !exit.Success() {
				t.Errorf("the program ended with %v after SIGTERM", exit)
			}
			if !strings.Contains(log, tc.want) {
				t.Errorf("the program says\n%s\nwant that the kernel lacks %q", log, tc.want)
			}
		})
	}
}

type exit struct{ syscall.WaitStatus }

// Success reports whether the program exited with code zero.
func (e exit) Success() bool { return e.Exited() && e.ExitStatus() == 0 }

// startAt starts the program with FNR_CONFINE set to level, on a kernel that seems to lack the given system call. It
// waits until the program serves or exits, and returns the log up to that point. The returned function stops the
// program if it still runs, and returns the exit status.
func (p Program) startAt(t *testing.T, level string, call uintptr) (log string, ended func() exit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	var args, env []string
	if p.Flags {
		args = []string{"--confine=" + level, "--telemetry-metrics-address=off", "--serve-drain-delay=0s"}
	} else {
		env = []string{"FNR_CONFINE=" + level, "FNR_TELEMETRY_METRICS_ADDRESS=off", "FNR_SERVE_DRAIN_DELAY=0s"}
	}
	cmd := exec.CommandContext(ctx, p.Path, append(args, p.Args...)...)
	cmd.Env = slices.Concat(cmd.Environ(), p.Env, env)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := onThreadWithout(call, cmd.Start); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "serving") {
		said.WriteString(lines.Text() + "\n")
	}
	return said.String(), func() exit {
		defer cancel()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		return exit{cmd.ProcessState.Sys().(syscall.WaitStatus)}
	}
}

// onThreadWithout calls the function start on a thread where the given system call seems to be missing. The call is
// also missing for processes that this function creates. The thread exits afterwards.
func onThreadWithout(call uintptr, start func() error) (err error) {
	osthread.Own(func() {
		if err = concealCall(call); err == nil {
			err = start()
		}
	})
	return err
}

// concealCall makes a system call fail on this thread, as if the kernel did not support the call. It uses a seccomp
// filter.
func concealCall(call uintptr) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	instructions := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // loads the number of the call
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
