package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
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
			return printLog(command.OutOrStdout(), l, args[0])
		},
	}
}

func printLog(out io.Writer, l layout.Layout, component string) error {
	log, err := os.Open(l.LogFile(filepath.Base(component)))
	if err != nil {
		return fmt.Errorf("reading the log of %s (there are: %s): %w", component, strings.Join(logNames(l), ", "), err)
	}
	defer log.Close()
	_, err = io.Copy(out, log)
	return err
}

func logNames(l layout.Layout) []string {
	paths, _ := filepath.Glob(l.LogFile("*")) // The pattern is well-formed.
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".log"))
	}
	return names
}
