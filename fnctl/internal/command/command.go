// SPDX-License-Identifier: Apache-2.0

// Package command contains the code that all commands of fnctl share. command.go contains their environment, flags.go
// flags and arguments, and exit.go errors with exit codes.
package command

import (
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// Environment contains the environment variables and standard streams of fnctl.
type Environment struct {
	// Environ contains fnctl's environment variables, as "NAME=value". Programs that run as functions inherit them.
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// ImageProgram is a local program that runs instead of every image, such as a function whose image is not built
	// yet. If it is empty, the images run.
	ImageProgram string
}

// LookUp returns the value of an environment variable, or an empty string if the variable is not set.
func (e Environment) LookUp(name string) string {
	for _, variable := range slices.Backward(e.Environ) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// Variables returns the values of the flag --env as KEY=VALUE. As in kpt, a bare KEY gets its value from the
// environment. A bare KEY that the environment lacks is omitted.
func (e Environment) Variables(flag []string) []string {
	var all []string
	for _, variable := range flag {
		if strings.Contains(variable, "=") {
			all = append(all, variable)
			continue
		}
		for _, own := range e.Environ {
			if strings.HasPrefix(own, variable+"=") {
				all = append(all, own)
			}
		}
	}
	return all
}

// ErrPrinter returns a printer to standard error.
func (e Environment) ErrPrinter() *ui.Printer { return ui.NewPrinter(e.Stderr, e.usesColour(e.Stderr)) }

// OutPrinter returns a printer to standard output.
func (e Environment) OutPrinter() *ui.Printer { return ui.NewPrinter(e.Stdout, e.usesColour(e.Stdout)) }

// Progress returns a display of running functions on standard error.
func (e Environment) Progress() *ui.Progress {
	return &ui.Progress{
		Printer: e.ErrPrinter(), Live: IsTerminal(e.Stderr),
		Width: func() int { width, _ := TerminalSize(e.Stderr); return width },
	}
}

// ReplaceLine replaces the terminal's current line by text. It does nothing without a terminal, or if text is too long.
func (e Environment) ReplaceLine(text string) {
	if width, _ := TerminalSize(e.Stderr); len(ui.OneLine(text)) < width {
		e.ErrPrinter().Replace(ui.OneLine(text))
	}
}

func (e Environment) usesColour(w io.Writer) bool {
	switch force := e.LookUp("CLICOLOR_FORCE"); {
	case e.LookUp("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return IsTerminal(w) && e.LookUp("TERM") != "dumb"
}

// IsTerminal reports whether an output is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalSize returns the current number of columns and lines of the terminal w. Both are 0 if w is no terminal.
func TerminalSize(w io.Writer) (width, height int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}
