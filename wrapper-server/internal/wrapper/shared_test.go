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
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// startScript serves a shell script that may use a directory, $SHARED, while it runs alone. The directory also contains
// the functions' temporary directories, as /tmp does in a pod.
func startScript(t *testing.T, script string) (evaluate func(list string) (string, error), shared string) {
	t.Helper()
	shared = t.TempDir()
	t.Setenv("TMPDIR", shared)
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

// assertNothingLeft checks that the server's own directory is the only entry of the shared directory.
func assertNothingLeft(t *testing.T, shared string) {
	t.Helper()
	entries, err := os.ReadDir(shared)
	if err != nil {
		t.Error(err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "fnr-function-files-") {
			t.Errorf("%s is left", entry.Name())
		}
	}
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
		"no rights at all":     "cat >$SHARED/a && cat $SHARED/a && chmod 0 $SHARED/fnr-* $SHARED",
		"the server's directory": `for dir in $SHARED/*/; do if [ -e "$dir/a" ]; then exit 1; fi; echo x >"$dir/a"; done
cat >$SHARED/a && cat $SHARED/a`,
		"the server's directory moved": `dir=$(echo $SHARED/fnr-*); mv "$dir" $SHARED/moved && ln -s /missing "$dir"
cat >$SHARED/a && cat $SHARED/a`,
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
			assertNothingLeft(t, shared)
		})
	}
}

// TestSpareProcessesFindNoFiles has a function that plants files in the temporary directories of all processes while
// it runs alone, and looks for such files in its own. Access to the shared directory does not help the function, so
// that its next evaluation may use a spare process.
func TestSpareProcessesFindNoFiles(t *testing.T) {
	evaluate, shared := startScript(t, `cat; if [ -e "$TMPDIR/a" ]; then echo found >&2; exit 1; fi
for dir in $SHARED/fnr-*/*/; do echo x >"$dir/a"; done 2>/dev/null; echo permission denied >&2`)
	await.Equal(t, "spare processes", func() int {
		dirs, _ := filepath.Glob(shared + "/*/*")
		return len(dirs)
	}, 2)
	for i := range 3 {
		if got, err := evaluate(listNumber(i)); err != nil || got != listNumber(i) {
			t.Errorf("%v, got %q, want its own input", err, got)
		}
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
	assertNothingLeft(t, shared)
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
	assertNothingLeft(t, shared)
}

// TestHomeIsWritable has images without a home directory.
func TestHomeIsWritable(t *testing.T) {
	evaluate, _ := startScript(t, "cat >~/a && cat ~/a")
	if got, err := evaluate(listNumber(1)); err != nil || got != listNumber(1) {
		t.Errorf("%v, got %q", err, got)
	}
}
