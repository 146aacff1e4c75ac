// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// trialTimeout bounds the trial of a launcher at the start.
const trialTimeout = 10 * time.Second

// try starts a sandbox that has this machine's files, which every machine has, and runs the launcher
// itself in it.
func (l *Launcher) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	cmd := l.Command(Function{Root: "/", Program: []string{l.path, "--version"}, Dir: "/"})
	trial := exec.CommandContext(ctx, cmd.Path, cmd.Args...)
	trial.Env, trial.Dir = []string{}, "/"
	trial.SysProcAttr = attributes(cmd.Launch)
	trial.Cancel = func() error { return syscall.Kill(-trial.Process.Pid, syscall.SIGKILL) } // the whole sandbox
	for _, path := range cmd.Launch.Files {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		trial.ExtraFiles = append(trial.ExtraFiles, file)
	}
	out, err := l.run(trial)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return fmt.Errorf("start a sandbox with %s: %w: %s: %sset FNR_SANDBOX=off",
		l.path, err, excerpt.Middle(strings.TrimSpace(string(out)), 300), advice)
}

// run runs a trial in a control group, if there are some, and returns what it writes.
func (l *Launcher) run(trial *exec.Cmd) ([]byte, error) {
	group, err := l.groups.Take()
	if err != nil {
		return nil, err
	}
	defer group.Release()
	var out bytes.Buffer
	trial.Stdout, trial.Stderr = &out, &out
	group.Start(trial.SysProcAttr, func() { err = trial.Start() })
	if err == nil {
		err = trial.Wait()
	}
	return out.Bytes(), err
}
