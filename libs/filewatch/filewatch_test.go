// SPDX-License-Identifier: Apache-2.0

package filewatch_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notice is one call of the callback.
type notice struct {
	content string
	err     error
}

// watch watches path, whose content was last, until the test ends.
func watch(t *testing.T, path, last string) <-chan notice {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	notices, ended := make(chan notice, 10), make(chan struct{})
	go func() {
		defer close(ended)
		filewatch.Watch(ctx, slog.New(slog.DiscardHandler), path, []byte(last), func(content []byte, err error) {
			notices <- notice{string(content), err}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return notices
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expect waits for a call with the given content. The read at the start of a watch may see a file
// that is being written and is still empty.
func expect(t *testing.T, notices <-chan notice, want string) {
	t.Helper()
	got := <-notices
	if got.err == nil && got.content == "" {
		got = <-notices
	}
	if got.err != nil || got.content != want {
		t.Errorf("reported %q, %v, want %q", got.content, got.err, want)
	}
}

func TestFileIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "one")
	notices := watch(t, path, "one")
	write(t, path, "two")
	expect(t, notices, "two")
	write(t, path, "three")
	expect(t, notices, "three")
}

func TestChangeBeforeTheWatchIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "two")
	expect(t, watch(t, path, "one"), "two")
}

func TestFileGoesAndComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "one")
	notices := watch(t, path, "one")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := <-notices; !errors.Is(got.err, fs.ErrNotExist) {
		t.Errorf("reported %v, want that the file does not exist", got.err)
	}
	write(t, path, "one")
	expect(t, notices, "one")
}

// TestMountedConfigMap changes a file in the way of the kubelet.
func TestMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, content string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "config.yaml"), content)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..one", "one")
	path := filepath.Join(dir, "config.yaml")
	if err := os.Symlink("..data/config.yaml", path); err != nil {
		t.Fatal(err)
	}
	notices := watch(t, path, "one")
	version("..two", "two")
	expect(t, notices, "two")
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	looked, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		filewatch.WatchDirectory(ctx, slog.New(slog.DiscardHandler), dir, func() { looked <- struct{}{} })
	}()
	<-looked
	for _, name := range []string{"ca.crt", "tls.crt"} {
		write(t, filepath.Join(dir, name), "content")
		<-looked
	}
	cancel()
	<-ended
}

// TestBrokenContentChangesNothing, nor does a file that never existed.
func TestBrokenContentChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	var log strings.Builder
	parsed, used, ended := make(chan string), make(chan int), make(chan struct{})
	go func() {
		defer close(ended)
		filewatch.Follow(ctx, slog.New(slog.NewTextHandler(&log, nil)), "number", path, nil,
			func(content []byte) (int, error) {
				parsed <- string(content)
				return strconv.Atoi(string(content))
			}, func(n int) { used <- n })
	}()
	expect := func(content string) {
		t.Helper()
		for got := range parsed { // a file that is being written may be empty
			if got == content {
				return
			}
		}
	}
	write(t, path, "1")
	expect("1")
	if n := <-used; n != 1 {
		t.Errorf("%d is used", n)
	}
	write(t, path, "one")
	expect("one")
	write(t, path, "2")
	expect("2")
	if n := <-used; n != 2 {
		t.Errorf("%d is used", n)
	}
	cancel()
	<-ended
	if text := log.String(); !strings.Contains(text, "of=number") || strings.Contains(text, "no such file") {
		t.Errorf("the log is %s", text)
	}
}
