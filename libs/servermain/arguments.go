// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Load fills cfg from environment variables, for a program that has no flags. With the argument --help, it prints
// the settings and exits. With other arguments or an invalid configuration, it prints the error and exits.
func Load(name string, cfg config.Validator) {
	code, end := loadSettings(name, os.Args[1:], cfg, os.Stdout, os.Stderr)
	if end {
		os.Exit(code)
	}
}

// loadSettings implements Load. If the program must exit, it returns true and the exit code.
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
