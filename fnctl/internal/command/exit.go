// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes of fnctl. Scripts rely on them.
const (
	ExitDone     = 0
	ExitFunction = 1
	ExitOther    = 2
	// ExitChanges is the exit code of fnctl render --check if a render would change files.
	ExitChanges = 3
	// ExitInterrupted is the exit code after Ctrl-C. As in shells, it is 128 plus the number of SIGINT.
	ExitInterrupted = 130
)

// UsageError returns an error for an invalid command line, and refers the user to the command's --help.
func UsageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w (see %s --help)", DescribeFlag(err), cmd.CommandPath())
}

// forms describes the values of flags, by the flag's type, for errors.
var forms = map[string]string{"bool": "true or false", "duration": "a duration such as 30s", "int": "a whole number"}

// DescribeFlag returns the error of a flag with an invalid value, without the text of Go's parser. It returns other
// errors unchanged.
func DescribeFlag(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok || forms[invalid.GetFlag().Value.Type()] == "" {
		return err
	}
	flag := invalid.GetFlag()
	return fmt.Errorf(`invalid argument %q for "--%s" flag: it must be %s`,
		invalid.GetValue(), flag.Name, forms[flag.Value.Type()])
}

// codedError is an error that determines the exit code of fnctl.
type codedError struct {
	code int
	err  error
}

// WithCode returns an error with its own exit code, such as [ExitChanges]. If err is nil, fnctl prints no message.
func WithCode(code int, err error) error { return &codedError{code, err} }

// Code returns the exit code of an error from [WithCode]. ok is false for all other errors.
func Code(err error) (code int, ok bool) {
	if coded, ok := errors.AsType[*codedError](err); ok {
		return coded.code, true
	}
	return 0, false
}

func (e *codedError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }
