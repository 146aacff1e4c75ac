// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Load fills cfg from the environment, for a program without flags. With the argument --help, it prints the settings
// and exits. It also exits if there are other arguments or the configuration is wrong.
func Load(name string, cfg config.Validator) {
	code, end := loadSettings(name, os.Args[1:], cfg, os.Stdout, os.Stderr)
	if end {
		os.Exit(code)
	}
}

// loadSettings implements Load. It returns true and the exit code if the program must exit.
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
