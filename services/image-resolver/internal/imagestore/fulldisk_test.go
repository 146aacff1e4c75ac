// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// links pushes an image that has symbolic links only.
func (i *images) links(t *testing.T) string {
	t.Helper()
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for n := range 100 {
		header := &tar.Header{Typeflag: tar.TypeSymlink, Name: fmt.Sprintf("link-%d", n), Linkname: "target"}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	var image pushed
	i.add(t, &image, plain.Bytes(), oci.Digest(plain.Bytes()))
	return i.seal(t, image)
}

// TestFullDisk pulls an image into a small file system, in a namespace of its own.
func TestFullDisk(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digests, _ := someImages(t, source, 1)
	links := []string{source.links(t)}
	for name, tc := range map[string]struct {
		options string
		images  []string
	}{
		"bytes":              {"size=600k", digests},
		"files":              {"nr_inodes=9", digests},
		"symbolic links":     {"nr_inodes=20", links},
		"names of the store": {"nr_inodes=5", digests},
	} {
		cmd, out := child(t, dir, source, tc.images, "-child.mount="+tc.options)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		err := cmd.Run()
		full := "write to the image store " + dir + ": no space left on device: free some space"
		for _, part := range []string{full, `left: ""`} {
			if err == nil || !strings.Contains(out.String(), part) {
				t.Errorf("%s: %v\n%s\nwant a failure that says %q", name, err, out, part)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%v was written outside of the file system, %v", entries, err)
	}
}
