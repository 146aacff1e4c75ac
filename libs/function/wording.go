// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// Limits of a failure's text, in bytes. The text is sent in a header, so package rpcfault removes the middle of texts
// longer than maxText. The log gets at most maxStderr bytes, and the results get the rest. Callers prepend the image's
// name and up to prefix other bytes, for which the results leave room.
const (
	maxText   = 8 << 10
	maxStderr = 3 << 10
	prefix    = 64
)

// Wording returns the error text of a failure. Porch's users see only this text. There are two implementations,
// because two programs of Porch word failures differently.
type Wording func(*Failure) string

// ExecWording returns the same error text for a failure as Porch's exec evaluator.
func ExecWording(f *Failure) string {
	switch f.Reason {
	case Exited, Signaled:
		return withUnloggedResults(f, notExecuted(f, f.Status))
	default:
		return commonWording(f)
	}
}

// WrapperWording returns the same error text for a failure as Porch's wrapper server. If a failed function wrote a
// resource list, the text contains the list's results.
func WrapperWording(f *Failure) string {
	switch {
	case f.Reason != Exited && f.Reason != Signaled:
		return commonWording(f)
	case f.cause != nil:
		return notParsed(f, fmt.Sprintf("%s; %v", f.Status, f.cause))
	default:
		return withResults(f, func(results string) string {
			return fmt.Sprintf("failed to evaluate function %q with structured results: %s and stderr: %s",
				f.Image, results, stderr(f))
		})
	}
}

// commonWording returns the error text of failures for which ExecWording and WrapperWording use the same words.
func commonWording(f *Failure) string {
	switch f.Reason {
	case OutputInvalid:
		return notParsed(f, f.cause.Error())
	case OutputTooLarge:
		return fmt.Sprintf("function %q was stopped: %v (%s)", f.Image, f.cause, stderr(f))
	default:
		return notExecuted(f, f.cause.Error())
	}
}

func notParsed(f *Failure, why string) string {
	return fmt.Sprintf("failed to parse the output of function %q with stderr '%s': %s", f.Image, stderr(f), why)
}

// notExecuted returns the error text "Failed to execute function", followed by the function's log, or by its results
// if the log is empty.
func notExecuted(f *Failure, why string) string {
	text := func(output string) string {
		return fmt.Sprintf(executePrefix+"%s (%s)", f.Image, why, output)
	}
	if logged := stderr(f); logged != "" {
		return text(logged)
	}
	return withResults(f, text)
}

// withUnloggedResults appends to text the results whose messages do not appear in the log. Functions that use kpt's
// SDK log only that they failed, and report the reason in their results.
func withUnloggedResults(f *Failure, text string) string {
	logged := stderr(f)
	if logged == "" {
		return text
	}
	unlogged := slices.DeleteFunc(slices.Clone(f.Results), func(r resourcelist.Result) bool {
		return strings.Contains(logged, strings.TrimSpace(r.Message))
	})
	if len(unlogged) == 0 {
		return text
	}
	const before = "; structured results: "
	return text + before + formatResults(unlogged, maxText-prefix-len(f.Image)-len(text)-len(before))
}

func stderr(f *Failure) string {
	return excerpt.Middle(strings.TrimRight(f.Stderr, "\r\n"), maxStderr)
}

// withResults returns the text of a failure with as many results as fit. The callback text returns the whole text for
// the given results.
func withResults(f *Failure, text func(results string) string) string {
	return text(formatResults(f.Results, maxText-prefix-len(f.Image)-len(text(""))))
}

// formatResults returns the texts of the results. If they exceed limit bytes, it returns the first results that fit
// and the number of omitted results. It always includes the first result, shortened if necessary.
func formatResults(all []resourcelist.Result, limit int) string {
	if whole := resourcelist.FormatResults(all); len(whole) <= limit {
		return whole
	}
	const separator, more, excerptNote = "\n\n", "… and %d more", 64
	limit -= len(separator) + len(more) + len("1000000")
	shown, n := all[0].String(), 1
	if len(shown) > limit {
		shown = excerpt.Middle(shown, max(limit-excerptNote, 0))
	}
	for ; n < len(all); n++ {
		next := separator + all[n].String()
		if len(shown)+len(next) > limit {
			break
		}
		shown += next
	}
	if n == len(all) {
		return shown
	}
	return shown + separator + fmt.Sprintf(more, len(all)-n)
}
