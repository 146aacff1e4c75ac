// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// nodeModules are the JavaScript modules that Node.js requires and that Debian ships in separate packages.
var nodeModules = []string{"acorn", "acorn-walk", "cjs-module-lexer", "undici"}

// NodeJS returns the files that an image needs to run JavaScript. These are the executable of Node.js, its shared
// libraries, and the modules that Debian ships in separate packages. The executable is copied from source to
// /usr/bin/node. Libraries and modules are searched first in the directories that unpacked lists, as in [Program], and
// then on this machine.
func NodeJS(source string, unpacked ...string) ([]File, error) {
	files, err := Program("/usr/bin/node", source, unpacked...)
	if err != nil {
		return nil, err
	}
	for _, root := range append(unpacked[:len(unpacked):len(unpacked)], "/") {
		for _, module := range nodeModules {
			more, err := listDirectory(root, filepath.Join("/usr/share/nodejs", module))
			if err != nil {
				return nil, fmt.Errorf("find the modules of Node.js: %w", err)
			}
			files = append(files, more...)
		}
	}
	return files, nil
}

// listDirectory returns all files and symbolic links below the directory dir of root, with paths relative to root.
// The result is empty if the directory does not exist.
func listDirectory(root, dir string) (files []File, err error) {
	err = filepath.WalkDir(filepath.Join(root, dir), func(source string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir():
			return err
		}
		path, err := filepath.Rel(root, source)
		if err != nil {
			return err
		}
		file := File{Path: filepath.Join("/", path), Mode: 0o644}
		switch {
		case entry.Type().IsRegular():
			file.Source = source
		case entry.Type() == fs.ModeSymlink:
			file.Link, err = os.Readlink(source)
		default:
			return nil
		}
		files = append(files, file)
		return err
	})
	return files, err
}
