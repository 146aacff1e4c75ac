// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

const (
	// trialTimeout limits the test of a launcher with a first sandbox.
	trialTimeout = 10 * time.Second
	// trialBytes limits a launcher's stdout and stderr during its trial, in bytes each.
	trialBytes = 64 << 10
)

// tryLauncher checks that the launcher works on this machine. It starts a sandbox with this machine's root
// directory as the image, and runs the launcher's own program with --version in it.
func (l *Launcher) tryLauncher(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	cmd, startErr := l.Command(Function{Name: "trial", Root: "/", Program: []string{l.path, "--version"}, Dir: "/"})
	if startErr != nil {
		return startErr
	}
	cmd.MaxOutput, cmd.MaxLog = trialBytes, trialBytes
	out, err := fnproc.NewRunner(fnproc.Config{}).Run(ctx, cmd, nil)
	launch, ofLauncher := errors.AsType[*fnproc.LaunchError](err)
	switch {
	case err == nil && out.ExitCode == 0:
		return nil
	case err == nil:
		err = errors.New(out.Status)
	case ofLauncher: // omits the error's advice, which is added below
		err = errors.New(launch.Words)
	}
	if ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return fmt.Errorf("start a sandbox with %s: %w: %s: %sset FNR_SANDBOX=off",
		l.path, err, excerpt.Middle(strings.TrimSpace(string(out.Log)), 300), advice)
}
