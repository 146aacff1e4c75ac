// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Load fills cfg from the environment, for a program without flags. It prints --help. It exits if the program was
// started with other arguments or with a wrong configuration.
func Load(name string, cfg config.Validator) {
	code, end := loadSettings(name, os.Args[1:], cfg, os.Stdout, os.Stderr)
	if end {
		os.Exit(code)
	}
}

// loadSettings returns the exit code if the program must exit.
func loadSettings(name string, args []string, cfg config.Validator, stdout, stderr io.Writer) (code int, end bool) {
	switch {
	case slices.ContainsFunc(args, isHelp):
		_, _ = fmt.Fprintf(stdout, "usage: %s\n\n", name)
		config.Help(stdout, cfg, nil)
		return ok, true
	case len(args) > 0:
		return rejectConfig(stderr, name, fmt.Errorf(
			"unexpected arguments %q: all settings are environment variables, which --help lists", args)), true
	}
	if err := config.Load(cfg); err != nil {
		return rejectConfig(stderr, name, err), true
	}
	return ok, false
}

func isHelp(arg string) bool { return slices.Contains([]string{"help", "-h", "-help", "--help"}, arg) }
