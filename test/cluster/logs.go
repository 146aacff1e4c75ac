// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func logsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "logs COMPONENT",
		Short: "Print the log of a component",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			l, err := o.layout()
			if err != nil {
				return err
			}
			if _, err := state.Load(l); errors.Is(err, state.ErrNone) {
				return err
			}
			return printLog(command.OutOrStdout(), l.Logs(), args[0])
		},
	}
}

func printLog(out io.Writer, dir, component string) error {
	names := logNames(dir)
	if !slices.Contains(names, component) {
		return fmt.Errorf("there is no log of %q; there are those of: %s", component, strings.Join(names, ", "))
	}
	log, err := os.Open(filepath.Join(dir, component+logSuffix))
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", component, err)
	}
	defer log.Close()
	_, err = io.Copy(out, log)
	return err
}

const logSuffix = ".log"

func logNames(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*"+logSuffix)) // never fails: the pattern is well-formed
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), logSuffix))
	}
	return names
}
