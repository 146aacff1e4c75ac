// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The settings of benchmarks that loadgen measures.
var (
	benchLoadgen   = flag.String("bench.loadgen", "", "the program loadgen")
	benchFunctions = flag.String("bench.functions", "", "directory with the functions of the catalog as programs")
	benchTime      = flag.Duration("bench.time", 30*time.Second, "about how long each list is measured")
	benchTables    = flag.String("bench.tables", "", "directory to write tables into, as Markdown; empty for none")
)

// benchReport is what loadgen writes.
type benchReport struct {
	Machine struct{ Description string }
	Levels  []struct {
		Different []string
		Results   []benchResult
	}
}

// benchResult is what was measured of one target.
type benchResult struct {
	Evaluations                        int
	PerSecond, ClientMilliseconds      float64
	Milliseconds                       struct{ P50, P99 float64 }
	PerSecondRatio, P50Ratio, P99Ratio *benchRatio
}

// benchRatio is a ratio and its bounds.
type benchRatio struct{ Value, Low, High float64 }

func (r benchRatio) String() string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Value, r.Low, r.High)
}

// runLoadgen measures one list with one load.
func runLoadgen(b *testing.B, args ...string) benchReport {
	b.Helper()
	if *benchLoadgen == "" {
		b.Fatal("-bench.loadgen names no program: run make bench-cluster")
	}
	args = append([]string{"--json", "--duration", benchTime.String()}, args...)
	cmd := exec.CommandContext(b.Context(), *benchLoadgen, args...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("loadgen %s: %v: %s", strings.Join(args, " "), err, &log)
	}
	var report benchReport
	if err := json.Unmarshal(out, &report); err != nil {
		b.Fatal(err)
	}
	writeTable(b, "machine-cluster", report.Machine.Description+".\n")
	return report
}

// both returns the results of the two targets of a report.
func (r benchReport) both(b *testing.B) (base, other benchResult) {
	b.Helper()
	if len(r.Levels) != 1 || len(r.Levels[0].Results) != 2 {
		b.Fatalf("want one list, one load and two targets: %+v", r)
	}
	if level := r.Levels[0]; len(level.Different) > 0 {
		b.Errorf("the targets return different lists: %v", level.Different)
	}
	return r.Levels[0].Results[0], r.Levels[0].Results[1]
}

// table is a table in Markdown.
type table struct{ strings.Builder }

func newTable(head ...string) *table {
	t := &table{}
	t.row(head...)
	t.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	return t
}

func (t *table) row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

// publish prints a table, and writes it into the directory for tables, if there is one.
func publish(b testing.TB, name, text string) {
	b.Helper()
	b.Logf("%s:\n%s", name, text)
	writeTable(b, name, text)
}

func writeTable(b testing.TB, name, text string) {
	b.Helper()
	if *benchTables == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*benchTables, name+".md"), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}
