// SPDX-License-Identifier: Apache-2.0

package row

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/caller"
)

const format = "%-28s %-16s %-7s %8s %8s %8s %12s %12s\n"

// Header writes the table's header line.
func Header(w io.Writer) error {
	_, err := fmt.Fprintf(w, format, "ATTACK", "PROGRAM", "RESULT", "BEFORE", "PEAK", "AFTER", "OTHERS' P99", "MEANWHILE")
	return err
}

// Write writes the row as a line of the table. The program's problems follow on the lines below.
func (r Row) Write(w io.Writer) error {
	result, failures := "ok", ""
	if err := r.Err(); err != nil {
		result, failures = "FAILED", "    "+strings.ReplaceAll(err.Error(), "\n", "\n    ")+"\n"
	}
	_, err := fmt.Fprintf(w, format+"%s",
		r.Attack, r.Program, result,
		formatMebibytes(r.Before), formatMebibytes(r.Peak), formatMebibytes(r.After),
		formatLatency(r.Undisturbed), formatLatency(r.Meanwhile), failures)
	return err
}

func formatMebibytes(n int64) string { return fmt.Sprintf("%dMiB", n>>20) }

func formatLatency(d time.Duration) string {
	if d == caller.Never {
		return "refused"
	}
	return d.Round(time.Millisecond / 10).String()
}
