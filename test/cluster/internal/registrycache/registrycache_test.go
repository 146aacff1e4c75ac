// SPDX-License-Identifier: Apache-2.0

package registrycache_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/registrycache"
)

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func fill(t *testing.T, s registrycache.Cache, key string) (dir string, filled bool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "registry")
	filled, err := s.Fill(key, dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, filled
}

func TestRegistriesGetWhatOneHad(t *testing.T) {
	s := registrycache.Cache{Dir: filepath.Join(t.TempDir(), "stock")}
	if _, filled := fill(t, s, "key"); filled {
		t.Error("a registry is filled with nothing kept")
	}
	first, blob := t.TempDir(), bytes.Repeat([]byte("b"), 1<<20)
	write(t, first, "blobs/large/data", blob)
	write(t, first, "blobs/small/data", []byte("manifest"))
	write(t, first, "repositories/r/tags/v1/link", []byte("small"))
	write(t, first, "repositories/r/_uploads/1/data", []byte("half"))
	for range 2 { // the second one finds it there
		if err := s.Keep("key", first); err != nil {
			t.Fatal(err)
		}
	}
	second, filled := fill(t, s, "key")
	if !filled {
		t.Fatal("nothing is kept")
	}
	if !bytes.Equal(read(t, second, "blobs/large/data"), blob) ||
		string(read(t, second, "blobs/small/data")) != "manifest" {
		t.Error("the blobs are others")
	}
	if _, err := os.Stat(filepath.Join(second, "repositories/r/_uploads/1")); err == nil {
		t.Error("what had not been pushed to its end is there")
	}
}

// TestRegistriesGoTheirOwnWays pushes to a tag in one registry, and removes it.
func TestRegistriesGoTheirOwnWays(t *testing.T) {
	const tag, blob = "repositories/r/tags/v1/link", "blobs/large/data"
	s, first := registrycache.Cache{Dir: t.TempDir()}, t.TempDir()
	write(t, first, tag, []byte("one"))
	write(t, first, blob, bytes.Repeat([]byte("b"), 1<<20))
	if err := s.Keep("key", first); err != nil {
		t.Fatal(err)
	}
	write(t, first, tag, []byte("two"))
	second, _ := fill(t, s, "key")
	write(t, second, tag, []byte("three"))
	if err := os.RemoveAll(second); err != nil {
		t.Fatal(err)
	}
	third, _ := fill(t, s, "key")
	if got := string(read(t, third, tag)); got != "one" || len(read(t, third, blob)) != 1<<20 {
		t.Errorf("the third registry's tag is %q, want what was kept", got)
	}
}

func TestKeysDiffer(t *testing.T) {
	keys := map[string]string{}
	for name, key := range map[string]string{
		"nothing":    registrycache.Key("", nil),
		"an image":   registrycache.Key("", map[string]string{"a": "1"}),
		"its digest": registrycache.Key("", map[string]string{"a": "2"}),
		"its name":   registrycache.Key("", map[string]string{"b": "1"}),
		"before it":  registrycache.Key("x", map[string]string{"a": "1"}),
	} {
		if other, known := keys[key]; known {
			t.Errorf("%s and %s have one key", name, other)
		}
		keys[key] = name
	}
}
