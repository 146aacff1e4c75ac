// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// executables returns a directory with programs of these names, and one that cannot be run.
func executables(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(names, "text") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "text"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFunctionConfigsWinOverTheFile(t *testing.T) {
	dir, elsewhere := executables(t, "a", "b", "c", "d"), executables(t, "e")
	file, err := parseTable([]byte(`functions:
- {function: a, images: [a:v1, a:v2], prefork: 3}
- {function: c, images: [c:v1]}
`), dir, "example.com", 1)
	if err != nil {
		t.Fatal(err)
	}
	none := 0
	configs := []binaries.Binary{
		{Config: "b", Path: "b", Images: []string{"example.com/a:v2", "example.com/a:v3"}, Prefork: &none},
		{Config: "d", Path: filepath.Join(dir, "d"), Images: []string{"example.com/d:v1"}},
		{Config: "elsewhere", Path: filepath.Join(elsewhere, "e"), Images: []string{"example.com/e:v1"}},
		{Config: "missing", Path: "missing", Images: []string{"example.com/c:v1"}},
		{Config: "text", Path: "text", Images: []string{"example.com/c:v2"}},
		{Config: "directory", Path: dir, Images: []string{"example.com/c:v3"}},
	}
	got, problems := file.withConfigs(configs, dir, 1)
	for image, want := range map[string]string{
		"example.com/a:v1": "a", "example.com/a:v2": "b", "example.com/a:v3": "b",
		"example.com/c:v1": "c", "example.com/c:v2": "", "example.com/d:v1": "d", "example.com/e:v1": "",
	} {
		if binary := got.binaries[image]; filepath.Base(binary) != want && binary != want {
			t.Errorf("%s is mapped to %q, want %q", image, binary, want)
		}
	}
	for binary, want := range map[string]int{"a": 3, "b": 0, "c": 1} {
		if n := got.prefork[filepath.Join(dir, binary)]; n != want {
			t.Errorf("%d processes of %s are kept, want %d", n, binary, want)
		}
	}
	if tags := got.tags["example.com/a"]; !slices.Equal(tags, []string{"v1", "v2", "v3"}) {
		t.Errorf("tags of a are %v", tags)
	}
	if tags := file.tags["example.com/a"]; len(tags) != 2 || file.binaries["example.com/a:v2"] != filepath.Join(dir, "a") {
		t.Error("the file's table has changed")
	}
	for config, want := range map[string]string{
		"missing": "no such file", "text": "not a program that can be run", "directory": "not a program",
		"elsewhere": "outside of",
	} {
		if !strings.Contains(problems[config], want) {
			t.Errorf("the problem of %s is %q, want %q", config, problems[config], want)
		}
	}
	if len(problems) != 4 {
		t.Errorf("problems are %v", problems)
	}
}

// TestFunctionConfigsAndFileChange changes one and then the other: neither forgets what the
// other one says.
func TestFunctionConfigsAndFileChange(t *testing.T) {
	dir := executables(t, "a", "b")
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("functions: [{function: a, images: ['a:v1']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	tel := telemetry.Discard()
	tel.Log = slog.New(slog.NewTextHandler(&logs, nil))
	e, err := New(Config{
		File: path, Functions: dir, DefaultPrefix: "example.com",
		Service: function.ServiceConfig{Telemetry: tel},
	})
	if err != nil {
		t.Fatal(err)
	}
	problems := e.Use([]binaries.Binary{{Config: "b", Path: "b", Images: []string{"example.com/b:v1"}}})
	if problems == nil || len(problems) > 0 {
		t.Errorf("problems are %v, want none", problems)
	}
	changed, err := e.parseContent([]byte("functions: [{function: a, images: ['a:v2']}]"))
	if err != nil {
		t.Fatal(err)
	}
	e.applyFile(changed)
	now := e.table.Load().binaries
	if now["example.com/b:v1"] == "" || now["example.com/a:v2"] == "" || now["example.com/a:v1"] != "" {
		t.Errorf("binaries are %v", now)
	}
	e.Use(nil)
	if now := e.table.Load().binaries; len(now) != 1 {
		t.Errorf("binaries are %v, want those of the file", now)
	}
	for range 3 {
		e.Use([]binaries.Binary{{Config: "c", Path: "c", Images: []string{"example.com/c:v1"}}})
	}
	if n := strings.Count(logs.String(), "without a binary"); n != 1 {
		t.Errorf("a binary that is missing is logged %d times", n)
	}
}

// TestVersionConstraints: FunctionConfigs name tags and constraints, the older object first.
func TestVersionConstraints(t *testing.T) {
	dir := executables(t, "file", "old", "young")
	file, err := parseTable([]byte(`functions: [{function: file, images: ["fn:v0.4.1", "fn:v0.5.0", "fn:main"]}]`),
		dir, "example.com", 1)
	if err != nil {
		t.Fatal(err)
	}
	got, problems := file.withConfigs([]binaries.Binary{
		{Config: "old", Path: "old", Images: []string{"example.com/fn:~0.4", "example.com/fn:v0.6.0"}},
		{Config: "young", Path: "young", Images: []string{"example.com/fn:>=0.4.3 <0.7", "example.com/fn:v0.4.2"}},
	}, dir, 2)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for tag, want := range map[string]string{
		"v0.4.1": "old", "v0.4.2": "young", "v0.4.5": "old", "v0.5.0": "young", "v0.6.0": "old", "v0.6.1": "young",
		"main": "file", "v0.7.0": ".", "latest": ".",
	} {
		path, ok := got.findBinary(imagename.Name{Repository: "example.com/fn", Tag: tag})
		if filepath.Base(path) != want || ok != (want != ".") {
			t.Errorf("fn:%s is mapped to %q, want %q", tag, path, want)
		}
	}
	if _, ok := got.findBinary(imagename.Name{Repository: "example.com/fn", Tag: "v0.4.5", Digest: "sha256:00"}); ok {
		t.Error("a digest has a binary")
	}
	if len(got.prefork) != 3 || got.prefork[filepath.Join(dir, "old")] != 2 {
		t.Errorf("processes are kept of %v", got.prefork)
	}
}
