// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/audit"
)

// TestRotation renames the file, removes it, and truncates it.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	out, err := audit.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(i int) {
		t.Helper()
		if err := out.Write(t.Context(), []audit.Event{event(i)}); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(file, want string) {
		t.Helper()
		content, err := os.ReadFile(file)
		if err != nil || strings.Count(string(content), "\n") != 1 || !strings.Contains(string(content), want) {
			t.Errorf("%s has %q, %v, want %s alone", file, content, err, want)
		}
	}
	write(0)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(1)
	wants(path+".1", "fn-0")
	wants(path, "fn-1")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(2)
	wants(path, "fn-2")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	write(3)
	wants(path, "fn-3")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	if _, err := audit.OpenFile(filepath.Join(path, "below-a-file")); err == nil {
		t.Error("a path that cannot be: no error")
	}
}

// TestARotationThatWentWrong has a directory in the place of the file for a while.
func TestARotationThatWentWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	out, err := audit.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path, path+".1"), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := out.Write(t.Context(), []audit.Event{event(0)}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want one that names the file", err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Write(t.Context(), []audit.Event{event(1)}), out.Close()); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(path); err != nil || !strings.Contains(string(content), "fn-1") {
		t.Errorf("the file has %q, %v", content, err)
	}
}
