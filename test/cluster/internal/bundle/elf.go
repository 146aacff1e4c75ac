// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// libraryDirs are the directories in which Debian keeps shared libraries.
var libraryDirs = []string{"/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib", "/usr/lib", "/lib64"}

// sharedLibraries lists the files, beginning with its interpreter, that a program is linked with,
// directly or indirectly. The list is sorted.
func sharedLibraries(program string) ([]string, error) {
	found := map[string]bool{}
	pending := []string{program}
	for len(pending) > 0 {
		needed, err := imports(pending[0])
		if err != nil {
			return nil, err
		}
		pending = pending[1:]
		for _, path := range needed {
			if !found[path] {
				found[path] = true
				pending = append(pending, path)
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// imports lists the files that one program or library names.
func imports(path string) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()
	names, err := file.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("read the libraries of %s: %w", path, err)
	}
	var paths []string
	for _, name := range names {
		library, err := findLibrary(name)
		if err != nil {
			return nil, fmt.Errorf("read the libraries of %s: %w", path, err)
		}
		paths = append(paths, library)
	}
	if section := file.Section(".interp"); section != nil {
		interpreter, err := section.Data()
		if err != nil {
			return nil, fmt.Errorf("read the interpreter of %s: %w", path, err)
		}
		paths = append(paths, string(interpreter[:len(interpreter)-1]))
	}
	return paths, nil
}

func findLibrary(name string) (string, error) {
	for _, pattern := range libraryDirs {
		found, err := filepath.Glob(filepath.Join(pattern, name))
		if err != nil {
			return "", err
		}
		for _, path := range found {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("no library %s in %v", name, libraryDirs)
}
