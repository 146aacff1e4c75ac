// SPDX-License-Identifier: Apache-2.0

//go:build linux

package wrapper_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// startScript serves a shell script that may use a directory, $SHARED, while it runs alone.
func startScript(t *testing.T, script string) (evaluate func(list string) (string, error), shared string) {
	t.Helper()
	shared = t.TempDir()
	path := filepath.Join(t.TempDir(), "function")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, []string{"PATH=/usr/bin:/bin", "SHARED=" + shared}, "--", path)
	cfg.Shared = []string{shared}
	address := serveWith(t, cfg)
	conn := servetest.Dial(t, address)
	return func(list string) (string, error) {
		resp, err := evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(),
			&evaluator.EvaluateFunctionRequest{Image: "fn", ResourceList: []byte(list)})
		return string(resp.GetResourceList()), err
	}, shared
}

// listNumber returns a list that is like no other.
func listNumber(i int) string {
	const list = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\nfunctionConfig: {number: %d}\n"
	return fmt.Sprintf(list, i)
}

// TestFixedPathsBelowTmp has functions, several at the same time, that write to a path that each evaluation has, as
// functions do that were written for containers. Each gets its own file back, and nothing is left.
func TestFixedPathsBelowTmp(t *testing.T) {
	for name, script := range map[string]string{
		"input":                "cat >$SHARED/input.yaml && cat $SHARED/input.yaml",
		"cache":                "mkdir -p $SHARED/helm/cache && cat >$SHARED/helm/cache/a && cat $SHARED/helm/cache/a",
		"without an exit code": "cat >$SHARED/input.yaml; cat $SHARED/input.yaml; true",
		"without a log":        "{ cat >$SHARED/input.yaml && cat $SHARED/input.yaml; } 2>/dev/null",
		"nothing left before":  "if [ -e $SHARED/a ]; then exit 1; fi; cat >$SHARED/a && cat $SHARED/a",
		"no rights":            "mkdir $SHARED/a && cat >$SHARED/a/b && cat $SHARED/a/b && chmod 0 $SHARED/a",
	} {
		t.Run(name, func(t *testing.T) {
			evaluate, shared := startScript(t, script)
			var all sync.WaitGroup
			for i := range 12 {
				all.Go(func() {
					if got, err := evaluate(listNumber(i)); err != nil || got != listNumber(i) {
						t.Errorf("%v, got %q, want its own input", err, got)
					}
				})
			}
			all.Wait()
			if entries, err := os.ReadDir(shared); err != nil || len(entries) > 0 {
				t.Errorf("%v are left, %v", entries, err)
			}
		})
	}
}

// TestWhatStaysDenied has a function whose failure has nothing to do with such directories.
func TestWhatStaysDenied(t *testing.T) {
	evaluate, shared := startScript(t, "cat; echo x >/etc/denied")
	for range 3 {
		_, err := evaluate(listNumber(1))
		if err == nil || !strings.Contains(err.Error(), "ermission denied") {
			t.Errorf("got %v, want the function's own error", err)
		}
	}
	if entries, err := os.ReadDir(shared); err != nil || len(entries) > 0 {
		t.Errorf("%v are left, %v", entries, err)
	}
}

// TestADenialIsNotForEver has an input with which a function is denied another file, before one that needs the
// directory.
func TestADenialIsNotForEver(t *testing.T) {
	evaluate, _ := startScript(t, `read -r first; if [ "$first" = "# other" ]; then echo x >/etc/denied; exit; fi
{ echo "$first"; cat; } >$SHARED/a && cat $SHARED/a`)
	if _, err := evaluate("# other\n" + listNumber(1)); err == nil {
		t.Error("the function succeeds, want that it is denied a file")
	}
	if got, err := evaluate(listNumber(1)); err != nil || got != listNumber(1) {
		t.Errorf("%v, got %q", err, got)
	}
}

// TestFailuresWithoutALogStay has a function that fails without a log for another reason.
func TestFailuresWithoutALogStay(t *testing.T) {
	evaluate, shared := startScript(t, "cat >/dev/null; exit 3")
	for range 3 {
		if _, err := evaluate(listNumber(1)); err == nil || !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("got %v, want the function's own error", err)
		}
	}
	if entries, err := os.ReadDir(shared); err != nil || len(entries) > 0 {
		t.Errorf("%v are left, %v", entries, err)
	}
}

// TestHomeIsWritable has images without a home directory.
func TestHomeIsWritable(t *testing.T) {
	evaluate, _ := startScript(t, "cat >~/a && cat ~/a")
	if got, err := evaluate(listNumber(1)); err != nil || got != listNumber(1) {
		t.Errorf("%v, got %q", err, got)
	}
}
