// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

// What a child process of these tests does.
var (
	childStore  = flag.String("child.store", "", "for child processes: the store's directory")
	childSource = flag.String("child.source", "", "for child processes: the source's directory")
	childImages = flag.String("child.images", "", "for child processes: the digests to open")
	childRounds = flag.Int("child.rounds", 1, "for child processes: how often")
	childMount  = flag.String("child.mount", "", "for child processes: the options of a tmpfs at the store's directory")
)

// What a child process writes when it downloads a layer, and when it has an image.
const pulling, pulled = "pulling\n", "pulled\n"

// child returns a child process, which runs TestChild.
func child(t *testing.T, store string, source *images, digests []string, flags ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	args := append([]string{
		"-test.run=^TestChild$", "-child.store=" + store, "-child.source=" + source.dir,
		"-child.images=" + strings.Join(digests, ","),
	}, flags...)
	cmd := exec.Command(os.Args[0], args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// TestChild is what child processes run: it opens images and prunes the store.
func TestChild(t *testing.T) {
	if *childStore == "" {
		return // this is no child process
	}
	if *childMount != "" {
		if err := syscall.Mount("none", *childStore, "tmpfs", 0, *childMount); err != nil {
			t.Fatal(err)
		}
	}
	store := newStore(t, *childStore, &images{dir: *childSource, before: func(context.Context, string) error {
		_, _ = os.Stdout.WriteString(pulling)
		return nil
	}})
	for range *childRounds {
		for digest := range strings.SplitSeq(*childImages, ",") {
			root, release, err := store.Open(t.Context(), repository, digest, nil)
			if err != nil {
				t.Fatalf("%v; left: %q", err, left(t, *childStore))
			}
			_, _ = os.Stdout.WriteString(pulled)
			if content, err := os.ReadFile(filepath.Join(root, "last")); err != nil || string(content) != "last" {
				t.Errorf("the image is not whole while it is open: %q, %v", content, err)
			}
			release()
			if *childRounds > 1 {
				if _, err := store.Prune(t.Context(), 0); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// someImages pushes images with enough files that a pull takes a moment.
func someImages(t *testing.T, source *images, n int) (digests []string, files map[string]string) {
	t.Helper()
	files = map[string]string{"last": "last"}
	for i := range 60 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = strings.Repeat(string(rune('a'+i%26)), 1000*i)
	}
	for i := range n {
		digests = append(digests, source.push(t, files, map[string]string{"own": strconv.Itoa(i)}))
	}
	return digests, files
}

func TestProcessesPullAndPruneAtTheSameTime(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digests, _ := someImages(t, source, 3)
	var processes sync.WaitGroup
	for range 3 {
		cmd, out := child(t, dir, source, digests, "-child.rounds=5")
		processes.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	processes.Wait()
	if got := left(t, dir); got != "" {
		t.Errorf("%s is left", got)
	}
}

// TestStagesBesideSweeps: what begins at the moment when another process looks for what was left
// behind is not taken for that.
func TestStagesBesideSweeps(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digests, _ := someImages(t, source, 1)
	store := newStore(t, dir, source)
	open(t, store, digests[0])
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for ctx.Err() == nil {
			other, err := imagestore.Open(imagestore.Config{Dir: dir, Log: discard()}) // sweeps
			if err != nil {
				t.Error(err)
				return
			}
			other.Close()
		}
	})
	for i := range 3000 {
		name := imagestore.Name{Repository: repository, Tag: "v1", Digest: digests[0], User: strconv.Itoa(i)}
		if err := store.Remember(t.Context(), name); err != nil {
			t.Errorf("name %d: %v", i, err)
			break
		}
	}
	stop()
	sweeping.Wait()
}

// TestPullsKeepNoUnusedImages prunes a store while another process checks whether a new image fits the store.
func TestPullsKeepNoUnusedImages(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digest := source.push(t, map[string]string{"a": "1"})
	store := newStore(t, dir, source)
	full := newStore(t, dir, source, func(cfg *imagestore.Config) { cfg.MaxBytes = 1 })
	for range 10 {
		for i := range 50 {
			image := filepath.Join(dir, "images", fmt.Sprintf("%064d", i))
			record := fmt.Sprintf(`{"digest":"sha256:%064d","bytes":1}`, i)
			if err := errors.Join(os.Mkdir(image, 0o700),
				os.WriteFile(filepath.Join(image, "image.json"), []byte(record), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		var pull sync.WaitGroup
		pull.Go(func() {
			if _, _, err := full.Open(t.Context(), repository, digest, nil); fault.Of(err) != fault.Exhausted {
				t.Errorf("error %v, want that the image does not fit", err)
			}
		})
		images, err := store.Prune(t.Context(), 0)
		pull.Wait()
		if err != nil || len(images) > 0 {
			t.Fatalf("%d images are left, %v, want none", len(images), err)
		}
	}
}

func TestStoreThatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := imagestore.Open(imagestore.Config{Dir: filepath.Join(file, "store"), Log: discard()})
	if err == nil || !strings.Contains(err.Error(), "FNR_SANDBOX_STORE") || fault.Of(err) != fault.Internal {
		t.Errorf("error %v, want one that names the setting", err)
	}
}
