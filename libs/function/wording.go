package function

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// maxText bounds each part of a failure's text, in bytes: the text travels in a
// header.
const maxText = 3 << 10

// Wording puts a failure into words. Porch has two wordings, and its users read
// nothing but these texts.
type Wording func(*Failure) string

// ExecWording is how Porch's exec evaluator tells failures.
func ExecWording(f *Failure) string {
	switch f.Reason {
	case Exited, Signaled:
		return notExecuted(f, f.Status)
	default:
		return commonWording(f)
	}
}

// WrapperWording is how Porch's wrapper server tells failures: a function that
// ended badly and still wrote a resource list is told by its results.
func WrapperWording(f *Failure) string {
	switch {
	case f.Reason != Exited && f.Reason != Signaled:
		return commonWording(f)
	case f.cause != nil:
		return notParsed(f, fmt.Sprintf("%s; %v", f.Status, f.cause))
	default:
		return fmt.Sprintf("failed to evaluate function %q with structured results: %s and stderr: %s", f.Image, results(f), stderr(f))
	}
}

// commonWording tells what both tell alike.
func commonWording(f *Failure) string {
	switch f.Reason {
	case OutputInvalid:
		return notParsed(f, f.cause.Error())
	case OutputTooLarge, LogTooLarge:
		return fmt.Sprintf("function %q was stopped: %v (%s)", f.Image, f.cause, stderr(f))
	default:
		return notExecuted(f, f.cause.Error())
	}
}

func notParsed(f *Failure, why string) string {
	return fmt.Sprintf("failed to parse the output of function %q with stderr '%s': %s", f.Image, stderr(f), why)
}

// notExecuted tells what the function logged; one that logged nothing is told by
// its results, so that the text says something.
func notExecuted(f *Failure, why string) string {
	said := stderr(f)
	if said == "" {
		said = results(f)
	}
	return fmt.Sprintf("Failed to execute function %q: %s (%s)", f.Image, why, said)
}

func stderr(f *Failure) string {
	return excerpt.Middle(strings.TrimRight(f.Stderr, "\r\n"), maxText)
}

func results(f *Failure) string {
	return excerpt.Middle(resourcelist.FormatResults(f.Results), maxText)
}

// flatten puts a log on one line if that is wanted.
func (r *Runner) flatten(log []byte) []byte {
	if !r.FlattenLog {
		return log
	}
	return bytes.ReplaceAll(bytes.TrimRight(log, "\n"), []byte("\n"), []byte(" | "))
}
