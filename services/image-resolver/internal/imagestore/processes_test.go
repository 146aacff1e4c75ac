// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	store := newStore(t, *childStore, &images{dir: *childSource})
	for range *childRounds {
		for digest := range strings.SplitSeq(*childImages, ",") {
			image, err := store.Open(t.Context(), repository, digest, nil)
			if err != nil {
				t.Fatalf("%v; left: %q", err, left(t, *childStore))
			}
			if content, err := os.ReadFile(filepath.Join(image.Root, "last")); err != nil || string(content) != "last" {
				t.Errorf("the image is not whole while it is open: %q, %v", content, err)
			}
			image.Close()
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

// TestStagesBesideSweeps: what begins at the moment at which another process looks for what was left
// behind is not taken for that.
func TestStagesBesideSweeps(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digests, _ := someImages(t, source, 1)
	store, other := newStore(t, dir, source), newStore(t, dir, source)
	open(t, store, digests[0])
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for ctx.Err() == nil {
			_, _ = other.Prune(ctx, 64*mib)
		}
	})
	for i := range 3000 {
		name := imagestore.Name{Repository: repository, Tag: "v1", Digest: digests[0], User: strconv.Itoa(i)}
		if err := store.Remember(name); err != nil {
			t.Errorf("name %d: %v", i, err)
			break
		}
	}
	stop()
	sweeping.Wait()
}

// TestKilledPullsLeaveNothing kills processes at any point of a pull. What is in the store is whole at
// any time, and the next process removes the rest.
func TestKilledPullsLeaveNothing(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digests, files := someImages(t, source, 2)
	longest := 200 * time.Millisecond
	killed := 0
	for i := range 100 {
		cmd, out := child(t, dir, source, digests)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		kill := time.AfterFunc(time.Duration(rand.Int64N(int64(longest))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		kill.Stop()
		if err == nil { // it was done before: the next ones are killed earlier, and find nothing there
			longest = max(time.Since(start), 10*time.Millisecond)
			prune(t, dir, source)
			continue
		}
		killed++
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != -1 {
			t.Fatalf("process %d: %v\n%s", i, err, out)
		}
		expectWhole(t, dir, files)
	}
	t.Logf("%d of 100 processes were killed", killed)
	store := newStore(t, dir, source) // which removes what they left
	for _, digest := range digests {
		open(t, store, digest).Close()
	}
	expectWhole(t, dir, files)
	if _, err := store.Prune(t.Context(), 0); err != nil || left(t, dir) != "" {
		t.Errorf("%q is left, %v", left(t, dir), err)
	}
}

// prune empties a store.
func prune(t *testing.T, dir string, source *images) {
	t.Helper()
	if _, err := newStore(t, dir, source).Prune(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk pulls an image into a small file system, in a namespace of its own.
func TestFullDisk(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digests, _ := someImages(t, source, 1)
	for options, want := range map[string]string{
		"size=600k":   "no space left on device",
		"nr_inodes=9": "no space left on device",
	} {
		cmd, out := child(t, dir, source, digests, "-child.mount="+options)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		err := cmd.Run()
		for _, part := range []string{want, "write to the image store " + dir, repository + "@" + digests[0], `left: ""`} {
			if err == nil || !strings.Contains(out.String(), part) {
				t.Errorf("%s: %v\n%s\nwant a failure that says %q", options, err, out, part)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%v was written outside of the file system, %v", entries, err)
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
