// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

func TestBrokenFileKeepsTheLastGoodOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("functions: [{function: fn, images: ['fn:v1', 'fn:v1']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	tel := telemetry.Discard()
	tel.Log = slog.New(slog.NewTextHandler(&logs, nil))
	e, err := New(Config{
		File: file, Functions: "/functions", DefaultPrefix: "example.com", Service: function.ServiceConfig{Telemetry: tel},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.changed(t.Context(), []byte("functions: {"), nil)
	e.changed(t.Context(), nil, os.ErrNotExist)
	name := imagename.Name{Repository: "example.com/fn", Tag: "v1"}
	if got := e.table.Load().binaries[name.Key()]; got != "/functions/fn" {
		t.Errorf("after a broken file fn:v1 is mapped to %q", got)
	}
	for _, want := range []string{
		"the last good one stays in force", "file does not exist",
		"names an image twice", "names a function that is not there",
	} {
		if !strings.Contains(logs.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &logs)
		}
	}
}
