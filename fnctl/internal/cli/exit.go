// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

// The exit codes. Scripts rely on them.
const (
	exitDone     = 0
	exitFunction = 1
	exitOther    = 2
)

// usageError reports an invalid command line.
type usageError struct {
	command string
	err     error
}

func (e usageError) Error() string {
	return fmt.Sprintf("%v (see %s --help)", e.err, e.command)
}

// exitCode returns the exit code for the error of a command.
func exitCode(err error) int {
	_, failed := errors.AsType[*client.FunctionError](err)
	_, broken := errors.AsType[*pipeline.OutputError](err)
	switch {
	case err == nil:
		return exitDone
	case failed || broken:
		return exitFunction
	}
	return exitOther
}

// summary returns the last line of the output. It omits why a function failed: that is on the
// screen already.
func summary(err error) error {
	written := "nothing was written"
	partly, isPartly := errors.AsType[*partlyWritten](err)
	if isPartly {
		written = partly.written
	}
	if failed, ok := errors.AsType[*client.FunctionError](err); ok {
		return fmt.Errorf("function %q failed; %s", failed.Image, written)
	}
	if isPartly {
		return fmt.Errorf("%w; %s", partly.error, written)
	}
	return err
}
