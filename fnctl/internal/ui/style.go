// SPDX-License-Identifier: Apache-2.0

package ui

import "github.com/krm-function-runner/function-runner/fnctl/internal/result"

// paint changes how a text looks.
type paint func(text string) string

// plain leaves a text unchanged.
func plain(text string) string { return text }

// style adds the escape sequences that all terminals support.
type style struct{ colour bool }

func (s style) escape(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.escape("1", text) }
func (s style) faint(text string) string  { return s.escape("2", text) }
func (s style) red(text string) string    { return s.escape("31", text) }
func (s style) green(text string) string  { return s.escape("32", text) }
func (s style) yellow(text string) string { return s.escape("33", text) }
func (s style) cyan(text string) string   { return s.escape("36", text) }

func (s style) paintOf(severity result.Severity) paint {
	switch severity {
	case result.Error:
		return s.red
	case result.Warning:
		return s.yellow
	case result.Info:
	}
	return plain
}
