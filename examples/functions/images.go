// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

//go:embed scale/scale.sh
var scale string

//go:embed pinned/index.js
var pinned string

// sources contains the paths of files from which the images of the example functions are built.
type sources struct {
	// team is the path of the compiled Go function "team".
	team string
	// packages is a directory with Node.js and its libraries. If it is empty, this machine's Node.js is used.
	packages string
}

func (s sources) images() ([]image.Spec, error) {
	shell, err := programFiles("/bin/sh", "sh")
	if err != nil {
		return nil, err
	}
	sed, err := programFiles("/bin/sed", "sed")
	if err != nil {
		return nil, err
	}
	node, err := s.node()
	if err != nil {
		return nil, err
	}
	return []image.Spec{
		functionImage("team", []string{"/function"}, image.File{Path: "/function", Mode: 0o755, Source: s.team}),
		functionImage("scale", []string{"/scale.sh"},
			slices.Concat(shell, sed, []image.File{{Path: "/scale.sh", Mode: 0o755, Content: scale}})...),
		functionImage("pinned", []string{"/usr/bin/node", "/index.js"},
			append(node, image.File{Path: "/index.js", Mode: 0o644, Content: pinned})...),
	}, nil
}

// node returns the files of Node.js and its libraries for an image.
func (s sources) node() ([]image.File, error) {
	if s.packages != "" {
		return image.NodeJS(filepath.Join(s.packages, "usr/bin/node"), s.packages)
	}
	source, err := findResource("node")
	if err != nil {
		return nil, fmt.Errorf("%w: install the package nodejs", err)
	}
	return image.NodeJS(source)
}

// programFiles returns the files of a program of this machine and its shared libraries for an image. path is the
// program's path in the image.
func programFiles(path, name string) ([]image.File, error) {
	source, err := findResource(name)
	if err != nil {
		return nil, err
	}
	return image.Program(path, source)
}

// findResource searches PATH for a program, and resolves symbolic links.
func findResource(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}

// functionImage returns the image of a function. It removes duplicate files, such as libraries that two programs need.
func functionImage(name string, entrypoint []string, files ...image.File) image.Spec {
	slices.SortFunc(files, func(a, b image.File) int { return strings.Compare(a.Path, b.Path) })
	files = slices.CompactFunc(files, func(a, b image.File) bool { return a.Path == b.Path })
	return image.Spec{Name: name + ":v1", Files: files, Entrypoint: entrypoint, User: "65532"}
}
