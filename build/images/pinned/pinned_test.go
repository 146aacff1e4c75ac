// SPDX-License-Identifier: Apache-2.0

package pinned_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/build/images/pinned"
	"github.com/krm-function-runner/function-runner/build/images/release"
)

// digests returns a digest for each program.
func digests() map[string]string {
	found := map[string]string{}
	for i, program := range release.Programs() {
		found[program.Name] = "sha256:" + strings.Repeat(string(rune('a'+i)), 64)
	}
	return found
}

// TestManifestsNameDigestsAlone pins the project's manifests: no image of ours keeps a tag, and the values that a
// user may set are as they would be set.
func TestManifestsNameDigestsAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../deploy")); err != nil {
		t.Fatal(err)
	}
	if err := pinned.Tree(dir, digests()); err != nil {
		t.Fatal(err)
	}
	tagged := regexp.MustCompile(`newTag|\$\{tag\}|` + regexp.QuoteMeta(release.Home) + `/[a-z-]+:`)
	pins := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".md" {
			return err
		}
		content, err := os.ReadFile(path)
		for line := range strings.Lines(string(content)) {
			if tagged.MatchString(line) {
				t.Errorf("%s has %q", path, line)
			}
			if strings.Contains(line, "sha256:") {
				pins++
			}
			if value, setter, ok := strings.Cut(line, " # kpt-set: "); ok && strings.Contains(setter, "${registry}") {
				set := strings.ReplaceAll(strings.TrimSpace(setter), "${registry}", release.Home)
				if !strings.HasSuffix(value, ": "+set) {
					t.Errorf("%s: %q would be set to %s", path, line, set)
				}
			}
		}
		return err
	})
	if want := len(release.Programs()) + 1; err != nil || pins != want {
		t.Errorf("%d lines have a digest, want %d: each program in the list, and the pod template (%v)", pins, want, err)
	}
}

func TestAProgramWithoutImageIsAnError(t *testing.T) {
	known := digests()
	delete(known, "gateway")
	err := pinned.Tree("../../../deploy/components/images", known)
	if err == nil || !strings.Contains(err.Error(), "gateway") {
		t.Errorf("Tree = %v, want an error that names the program", err)
	}
}
