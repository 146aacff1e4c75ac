// SPDX-License-Identifier: Apache-2.0

package image

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

// libraryDirs are patterns of the directories where Debian installs shared libraries.
var libraryDirs = []string{"/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib", "/usr/lib", "/lib64"}

// Program returns an executable of this machine and the files that it needs in an image, which are its shared
// libraries and the dynamic linker. The executable is copied from source to path. Libraries are searched first in
// unpacked, which lists directories with unpacked Debian packages, and then on this machine.
func Program(path, source string, unpacked ...string) ([]File, error) {
	libraries, err := sharedLibraries(source, append(slices.Clone(unpacked), "/"))
	if err != nil {
		return nil, fmt.Errorf("find the libraries of %s: %w", source, err)
	}
	files := []File{{Path: path, Mode: 0o755, Source: source}}
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		files = append(files, File{Path: name, Mode: 0o755, Source: libraries[name]})
	}
	return files, nil
}

// sharedLibraries returns the shared libraries and the ELF interpreter of a program, including indirect
// dependencies. The keys are paths in the image, and the values are paths below roots on this machine.
func sharedLibraries(program string, roots []string) (map[string]string, error) {
	found := map[string]string{}
	pending := []string{program}
	for len(pending) > 0 {
		needed, err := importedFiles(pending[0], roots)
		if err != nil {
			return nil, err
		}
		pending = pending[1:]
		for path, source := range needed {
			if found[path] == "" {
				found[path] = source
				pending = append(pending, source)
			}
		}
	}
	return found, nil
}

// importedFiles returns the shared libraries and the interpreter on which an ELF file depends directly. The keys
// are paths in the image, and the values are paths on this machine.
func importedFiles(path string, roots []string) (map[string]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()
	found, err := importedLibraries(file, roots)
	if err != nil {
		return nil, fmt.Errorf("read the libraries of %s: %w", path, err)
	}
	name, err := interpreterOf(file)
	if err != nil {
		return nil, fmt.Errorf("read the interpreter of %s: %w", path, err)
	}
	if name != "" {
		found[name] = name
	}
	return found, nil
}

// importedLibraries returns the shared libraries with which an ELF file is directly linked.
func importedLibraries(file *elf.File, roots []string) (map[string]string, error) {
	names, err := file.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, name := range names {
		library, source, err := findLibrary(name, roots)
		if err != nil {
			return nil, err
		}
		found[library] = source
	}
	return found, nil
}

// interpreterOf returns the path of an ELF file's interpreter, the dynamic linker. It is empty for static programs.
func interpreterOf(file *elf.File) (string, error) {
	section := file.Section(".interp")
	if section == nil {
		return "", nil
	}
	name, err := section.Data()
	if err != nil {
		return "", err
	}
	return string(name[:len(name)-1]), nil
}

func findLibrary(name string, roots []string) (path, source string, err error) {
	for _, root := range roots {
		for _, dir := range libraryDirs {
			candidates, err := filepath.Glob(filepath.Join(root, dir, name))
			if err != nil {
				return "", "", err
			}
			for _, source := range candidates {
				if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
					continue
				}
				relative, err := filepath.Rel(root, source)
				return filepath.Join("/", relative), source, err
			}
		}
	}
	return "", "", fmt.Errorf("no library %s in %v", name, libraryDirs)
}
