// SPDX-License-Identifier: Apache-2.0

package downloads_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/build/images/downloads"
)

// TestNames are the names that documents tell users.
func TestNames(t *testing.T) {
	var names []string
	for _, program := range downloads.Programs() {
		for _, platform := range program.Platforms {
			names = append(names, program.Archive("v1.2.3", platform))
		}
	}
	want := []string{
		"fnctl_v1.2.3_linux_amd64.tar.gz", "fnctl_v1.2.3_linux_arm64.tar.gz",
		"fnctl_v1.2.3_darwin_amd64.tar.gz", "fnctl_v1.2.3_darwin_arm64.tar.gz", "fnctl_v1.2.3_windows_amd64.zip",
		"fnr-images_v1.2.3_linux_amd64.tar.gz", "fnr-images_v1.2.3_linux_arm64.tar.gz",
		"fnr-images_v1.2.3_darwin_amd64.tar.gz", "fnr-images_v1.2.3_darwin_arm64.tar.gz",
		"fnr-images_v1.2.3_windows_amd64.zip",
		"function-runner_v1.2.3_linux_amd64.tar.gz", "function-runner_v1.2.3_linux_arm64.tar.gz",
		"function-runner_v1.2.3_darwin_amd64.tar.gz", "function-runner_v1.2.3_darwin_arm64.tar.gz",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestMake makes fnctl's archive for this machine twice, and uses the program in it.
func TestMake(t *testing.T) {
	here := downloads.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	fnctl := downloads.Programs()[:1]
	fnctl[0] = fnctl[0].On(func(p downloads.Platform) bool { return p == here })
	out := [2]string{t.TempDir(), t.TempDir()}
	var archives [2][]byte
	for i, dir := range out {
		maker := downloads.Maker{
			Root: "../../..", Env: exec.Command("go").Environ(), Version: "v1.2.3", Modified: time.Unix(1e9, 0), Out: dir,
		}
		if err := maker.Make(t.Context(), fnctl); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(filepath.Join(dir, fnctl[0].Archive("v1.2.3", here))); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds differ")
	}
	run(t, out[0], "tar", "-xzf", fnctl[0].Archive("v1.2.3", here))
	program := filepath.Join(out[0], "fnctl_v1.2.3_"+here.OS+"_"+here.Arch, "fnctl")
	if version := run(t, out[0], program, "--version"); !strings.Contains(version, "v1.2.3") {
		t.Errorf("--version prints %q, want v1.2.3", version)
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}
