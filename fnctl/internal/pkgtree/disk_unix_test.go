// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pkgtree_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// secret stands for a file of the user that a package must not make fnctl read or print.
const secret = "https://user:hunter2@example.com\n"

// TestReadRejectsIrregularFiles reads packages whose files are links out of the package, pipes, devices or too large,
// under each of the names that are read. None of them may hang the test, and no error may contain a secret.
func TestReadRejectsIrregularFiles(t *testing.T) {
	for what, tc := range map[string]struct {
		make func(name string) error
		want string
	}{
		"absolute link": {func(name string) error {
			return os.Symlink(filepath.Join(filepath.Dir(filepath.Dir(name)), "secret"), name)
		}, "is a link that leaves the package"},
		"relative link": {func(name string) error {
			return os.Symlink("../secret", name)
		}, "is a link that leaves the package"},
		"link to a device": {func(name string) error {
			return os.Symlink("/dev/zero", name)
		}, "is a link that leaves the package"},
		"pipe": {func(name string) error { return syscall.Mkfifo(name, 0o600) }, "is not a regular file"},
		"link to a pipe": {func(name string) error {
			if err := syscall.Mkfifo(filepath.Join(filepath.Dir(name), "pipe"), 0o600); err != nil {
				return err
			}
			return os.Symlink("pipe", name)
		}, "is not a regular file"},
		"sparse file": {func(name string) error {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(name, 20<<30)
		}, "has more than 64 MiB"},
	} {
		for _, file := range []string{"z.yaml", "Kptfile", ".krmignore", "in/Kptfile", "in/z.json"} {
			t.Run(what+" as "+file, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "p")
				write(t, filepath.Join(dir, "..", "secret"), secret)
				write(t, filepath.Join(dir, "in", "a.yaml"), "kind: ConfigMap\n")
				if file != "Kptfile" {
					write(t, filepath.Join(dir, "Kptfile"), "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: p}\n")
				}
				name := filepath.Join(dir, file)
				if strings.HasPrefix(file, "in/") && strings.HasSuffix(what, "link") {
					write(t, filepath.Join(dir, "secret"), secret) // ../secret is inside of the package: only text
				}
				if err := tc.make(name); err != nil {
					t.Fatal(err)
				}
				want := tc.want
				if file == ".krmignore" {
					want = strings.Replace(want, "64 MiB", "1 MiB", 1)
				}
				_, err := pkgtree.Read(dir)
				if err == nil || strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("Read = %v, want an error without the secret", err)
				}
				if !strings.HasPrefix(file, "in/") && !strings.Contains(err.Error(), filepath.Base(file)+" "+want) {
					t.Errorf("Read = %v, want an error that %s %s", err, file, want)
				}
			})
		}
	}
}

// TestReadBoundsPackages reads a package whose files are each within the limit and together are not.
func TestReadBoundsPackages(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml"} {
		write(t, filepath.Join(dir, name), "# "+strings.Repeat(".", 60<<20)+"\n")
	}
	if _, err := pkgtree.ReadFlat(dir); err == nil || !strings.Contains(err.Error(), "more than 256 MiB together") {
		t.Errorf("ReadFlat = %v, want an error about the size of all files", err)
	}
}

// TestReadBoundsIgnoreFiles reads packages whose .krmignore is as large as permitted, and one byte larger.
func TestReadBoundsIgnoreFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, ".krmignore")
	write(t, name, "#"+strings.Repeat(".", 1<<20-1))
	if _, err := pkgtree.ReadFlat(dir); err != nil {
		t.Error(err)
	}
	write(t, name, "#"+strings.Repeat(".", 1<<20))
	if _, err := pkgtree.ReadFlat(dir); err == nil || !strings.Contains(err.Error(), ".krmignore has more than 1 MiB") {
		t.Errorf("ReadFlat = %v, want an error about the size of .krmignore", err)
	}
}

// TestReadFollowsLinksInside reads a link that stays inside of the package, as kpt does.
func TestReadFollowsLinksInside(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "base", "a.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	if err := os.Symlink("base/a.yaml", filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	tree, err := pkgtree.ReadFlat(dir)
	if err != nil || len(tree.Root.Resources) != 2 {
		t.Errorf("ReadFlat = %v, %v, want two resources", tree, err)
	}
}

// TestReadFollowsNoLinksIntoGit reads packages with links to files of Git that parse as resources.
func TestReadFollowsNoLinksIntoGit(t *testing.T) {
	for name, link := range map[string]string{
		"direct": ".git/HEAD", "behind a link to a directory": "d/HEAD", "bare": ".bare/HEAD",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{".git/HEAD", ".bare/HEAD", ".bare/objects/info/packs", ".bare/refs/heads/main"} {
				write(t, filepath.Join(dir, name), "ref: refs/heads/main\n")
			}
			for target, path := range map[string]string{".git": "d", link: "kustomization.yaml"} {
				if err := os.Symlink(target, filepath.Join(dir, path)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := pkgtree.ReadFlat(dir); err == nil || !strings.Contains(err.Error(), "kustomization.yaml") {
				t.Errorf("ReadFlat = %v, want an error about the link", err)
			}
		})
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
