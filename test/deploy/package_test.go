// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestPackageIsRendered checks that the values in the manifests are the ones that `kpt fn render`
// would write, so that it changes only what a user has set.
func TestPackageIsRendered(t *testing.T) {
	var setters corev1.ConfigMap
	content, err := os.ReadFile(filepath.Join(root, "deploy/setters.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(content, &setters)
	}
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for name, value := range setters.Data {
		pairs = append(pairs, "${"+name+"}", value)
	}
	set := strings.NewReplacer(pairs...)
	found := 0
	err = filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for line := range strings.Lines(string(content)) {
			field, pattern, ok := strings.Cut(line, " # kpt-set: ")
			if !ok {
				continue
			}
			found++
			if want := set.Replace(strings.TrimSpace(pattern)); !strings.HasSuffix(field, ": "+want) ||
				strings.Contains(want, "${") {
				t.Errorf("%s: %q, want %q", path, strings.TrimSpace(field), want)
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d values have setters (%v): where are the others?", found, err)
	}
}
