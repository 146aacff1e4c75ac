// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Shell runs a command repeatedly in a shell, with list as standard input, and discards the output. After every run, it
// passes the error or nil to the callback function each. Shell kills the command and returns if each returns false or
// ctx ends. It also does so if a run lasts longer than limit. If limit is zero, there is no such limit.
func Shell(ctx context.Context, environ []string, command string, list []byte, limit time.Duration,
	each func(error) bool,
) {
	if err := runShell(ctx, environ, command, list, limit, each); err != nil {
		each(fmt.Errorf("run %q in a shell: %w", command, err))
	}
}

// runShell implements Shell. It returns an error if the shell exits on its own or a run exceeds the limit.
func runShell(ctx context.Context, environ []string, command string, list []byte, limit time.Duration,
	each func(error) bool,
) error {
	input, err := writeTemporary(list)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(input) }()
	running, kill := context.WithCancel(ctx)
	// After each run, the shell prints the command's exit code on a line and continues at once.
	loop := "while :; do { " + command + `; } <"$1" >/dev/null; echo $?; done`
	cmd := exec.CommandContext(running, "sh", "-c", loop, "sh", input)
	cmd.Env = environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	codes, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		kill()
		return err
	}
	defer func() { kill(); _ = cmd.Wait() }()
	limit = cmp.Or(limit, math.MaxInt64)
	late := time.AfterFunc(limit, kill)
	defer late.Stop()
	for lines := bufio.NewScanner(codes); lines.Scan(); late.Reset(limit) {
		var failure error
		if code := lines.Text(); code != "0" {
			failure = fmt.Errorf("%q exited with code %s", command, code)
		}
		if !each(failure) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("it ended, or took longer than %v", limit)
}

// writeTemporary writes the content to a new temporary file and returns its path.
func writeTemporary(content []byte) (string, error) {
	file, err := os.CreateTemp("", "loadgen-list-")
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	return file.Name(), errors.Join(err, file.Close())
}
