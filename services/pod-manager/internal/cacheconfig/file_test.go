// SPDX-License-Identifier: Apache-2.0

package cacheconfig_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// follower follows a file and passes on what it says.
type follower struct {
	path    string
	changed chan map[string]cacheconfig.Entry
}

// follow begins to follow a file with that content.
func (f *follower) follow(t *testing.T, content string) *cacheconfig.File {
	t.Helper()
	f.path = filepath.Join(t.TempDir(), "pod-cache-config.yaml")
	f.changed = make(chan map[string]cacheconfig.Entry, 10)
	f.write(t, content)
	file, err := cacheconfig.Open(cacheconfig.Config{
		Path: f.path, DefaultImagePrefix: prefix, Log: slog.New(slog.DiscardHandler),
		Changed: func(settings map[string]cacheconfig.Entry) { f.changed <- settings },
	})
	if err != nil {
		t.Fatal(err)
	}
	servetest.Go(t, file.Run)
	return file
}

// write replaces the file at once, as Kubernetes does with those of a ConfigMap.
func (f *follower) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(f.path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(f.path+".new", f.path); err != nil {
		t.Fatal(err)
	}
}

func TestSettingsAtTheStart(t *testing.T) {
	file := new(follower).follow(t, "set-namespace:v1: 1h\nother.example/fn:v2: 30m\n")
	settings := file.Settings()
	if ttl := settings[prefix+"/set-namespace:v1"].TTL; ttl != time.Hour || len(settings) != 2 {
		t.Errorf("time to live %v of %d functions, want 1h of 2", ttl, len(settings))
	}
	if image := settings["other.example/fn:v2"].Image; image != "other.example/fn:v2" {
		t.Errorf("image %q, which keeps a minimum of pods", image)
	}
}

func TestChangesAreFollowed(t *testing.T) {
	f := &follower{}
	f.follow(t, "a:v1: 1h\n")
	f.write(t, "a:v1: [broken")
	f.write(t, "- {name: a:v1, timeToLive: 2h}\n- {name: b:v1, maxQueue: 3}\n")
	settings := <-f.changed
	if settings[prefix+"/a:v1"].TTL != 2*time.Hour || settings[prefix+"/b:v1"].MaxQueue != 3 {
		t.Errorf("settings are %+v", settings)
	}
	if image := settings[prefix+"/b:v1"].Image; image != prefix+"/b:v1" {
		t.Errorf("the new function's image is %q", image)
	}
}

func TestAFileThatComesLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later.yaml")
	changed := make(chan map[string]cacheconfig.Entry, 1)
	file, err := cacheconfig.Open(cacheconfig.Config{
		Path: path, Log: slog.New(slog.DiscardHandler),
		Changed: func(settings map[string]cacheconfig.Entry) { changed <- settings },
	})
	if err != nil || len(file.Settings()) != 0 {
		t.Fatalf("without a file: %v, %v", file.Settings(), err)
	}
	servetest.Go(t, file.Run)
	if err := os.WriteFile(path, []byte("example.com/a:v1: 1h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if settings := <-changed; len(settings) != 1 {
		t.Errorf("settings are %+v", settings)
	}
}

func TestAWrongFileStopsTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(path, []byte("a:v1: soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := cacheconfig.Open(cacheconfig.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "soon") {
		t.Errorf("error %v, want one that names file and value", err)
	}
}
