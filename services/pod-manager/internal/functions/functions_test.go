package functions_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prefix = "example.com/fns"

// follower follows a file and passes on what it says.
type follower struct {
	path    string
	warmed  chan string
	changed chan map[string]cacheconfig.Entry
	// unavailable is how many times images cannot be looked up at first.
	unavailable atomic.Int64
}

// follow begins to follow a file with that content.
func (f *follower) follow(t *testing.T, content string) *functions.File {
	t.Helper()
	f.path = filepath.Join(t.TempDir(), "pod-cache-config.yaml")
	f.warmed, f.changed = make(chan string, 10), make(chan map[string]cacheconfig.Entry, 10)
	f.write(t, content)
	file, err := functions.Open(functions.Config{
		Path: f.path, DefaultImagePrefix: prefix, Log: slog.New(slog.DiscardHandler),
		WarmUp: func(_ context.Context, image string) (func(context.Context) error, error) {
			if f.unavailable.Add(-1) >= 0 {
				return nil, fault.New(fault.Unavailable, "no resolver yet")
			}
			if strings.Contains(image, "bad") {
				return nil, fault.New(fault.Precondition, "no such image")
			}
			return func(context.Context) error { f.warmed <- image; return nil }, nil
		},
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

func TestFunctionsGetPodsAtTheStart(t *testing.T) {
	f := new(follower)
	f.unavailable.Store(1)
	file := f.follow(t, "set-namespace:v1: 1h\nbad:v1: 1h\nother.example/fn:v2: 30m\n")
	got := []string{<-f.warmed, <-f.warmed}
	slices.Sort(got)
	if want := []string{prefix + "/set-namespace:v1", "other.example/fn:v2"}; !slices.Equal(got, want) {
		t.Errorf("pods are made for %v, want %v: one that is wrong holds up none", got, want)
	}
	if ttl := file.Settings()[prefix+"/set-namespace:v1"].TTL; ttl != time.Hour {
		t.Errorf("time to live %v, want 1h", ttl)
	}
}

func TestChangesAreFollowed(t *testing.T) {
	f := &follower{}
	f.follow(t, "a:v1: 1h\n")
	<-f.warmed
	f.write(t, "a:v1: [broken")
	f.write(t, "- {name: a:v1, timeToLive: 2h}\n- {name: b:v1, maxQueue: 3}\n")
	settings := <-f.changed
	if settings[prefix+"/a:v1"].TTL != 2*time.Hour || settings[prefix+"/b:v1"].MaxQueue != 3 {
		t.Errorf("settings are %+v", settings)
	}
	if got := <-f.warmed; got != prefix+"/b:v1" {
		t.Errorf("a pod is made for %s, want one for the new function only", got)
	}
}

func TestAFileThatComesLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later.yaml")
	changed := make(chan map[string]cacheconfig.Entry, 1)
	file, err := functions.Open(functions.Config{
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
	_, err := functions.Open(functions.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "soon") {
		t.Errorf("error %v, want one that names file and value", err)
	}
}
