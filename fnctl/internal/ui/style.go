package ui

import "github.com/krm-function-runner/function-runner/fnctl/internal/result"

// style paints texts with the escape sequences that all terminals know.
type style struct{ colour bool }

func (s style) paint(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) faint(text string) string  { return s.paint("2", text) }
func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }
func (s style) cyan(text string) string   { return s.paint("36", text) }

func (s style) severity(severity result.Severity, text string) string {
	switch severity {
	case result.Error:
		return s.red(text)
	case result.Warning:
		return s.yellow(text)
	}
	return text
}
