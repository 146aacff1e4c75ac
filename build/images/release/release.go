// SPDX-License-Identifier: Apache-2.0

// Package release builds the container images of this project's programs with ko. The tool ko puts each program in
// /ko-app. Porch's manifests use different paths, so the images contain symbolic links there.
package release

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// Program describes a program of this project and its container image.
type Program struct {
	Name string
	// Module is the directory of the program's Go module, relative to the repository's root.
	Module string
	// Package is the directory of the program's main package, relative to Module.
	Package string
	// Links maps the paths of symbolic links in the image to their targets. The program itself is at /ko-app/NAME.
	Links map[string]string
	// Data is true if the image contains data files. `make kodata` writes them to the directory kodata next to the
	// program, and ko copies them to DataDir in the image.
	Data bool
}

// DataDir is the directory in an image where ko puts the program's data files.
const DataDir = "/var/run/ko"

// Programs lists all programs of this project whose images are published.
func Programs() []Program {
	return []Program{
		{Name: "wrapper-server", Module: "wrapper-server", Package: ".", Links: map[string]string{
			// In some function pods, an init container calls /bin/cp to copy the wrapper server into a volume. The wrapper
			// server therefore contains an implementation of cp. Other function pods mount this image as a volume.
			"/bin/cp": "/ko-app/wrapper-server",
			// Different versions of Porch create pods that copy the program from different directories.
			"/wrapper-server/wrapper-server":                 "/ko-app/wrapper-server",
			"/wrapper-server/grpc-health-probe":              "/ko-app/wrapper-server",
			"/home/nonroot/wrapper-server/wrapper-server":    "/ko-app/wrapper-server",
			"/home/nonroot/wrapper-server/grpc-health-probe": "/ko-app/wrapper-server",
		}},
		{Name: "gateway", Module: "services/gateway", Package: ".", Data: true},
		{Name: "pod-manager", Module: "services/pod-manager", Package: "."},
		{Name: "image-resolver", Module: "services/image-resolver", Package: "."},
		{Name: "function-runner", Module: "services/function-runner", Package: ".", Data: true, Links: functionRunnerLinks()},
	}
}

// functionRunnerLinks returns the symbolic links of the function-runner's image. At these paths, the manifests of
// different Porch versions expect the program and its data files.
func functionRunnerLinks() map[string]string {
	links := map[string]string{}
	for _, dir := range []string{"", "/home/nonroot"} {
		links[dir+"/server"] = "/ko-app/function-runner"
		for _, name := range []string{"config.yaml", "functions", "grpc-health-probe"} {
			links[dir+"/"+name] = DataDir + "/" + name
		}
	}
	return links
}

// DataFiles lists the data files of the program's image, with paths relative to DataDir. The parameter root is the
// repository's root.
func (p Program) DataFiles(root string) ([]image.File, error) {
	if !p.Data {
		return nil, nil
	}
	var files []image.File
	dir := filepath.Join(root, p.Module, p.Package, "kodata")
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, image.File{Path: "/" + name, Source: path})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the data files of the image of %s: %w", p.Name, err)
	}
	return files, nil
}

// Base describes the image to which ko adds the program. The image contains the program's user and symbolic links.
func (p Program) Base() image.Spec {
	files := []image.File{
		{Path: "/tmp", Mode: 0o777, Dir: true},
		{Path: "/etc/passwd", Mode: 0o644, Content: "nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"},
	}
	for _, path := range slices.Sorted(maps.Keys(p.Links)) {
		files = append(files, image.File{Path: path, Mode: 0o777, Link: p.Links[path]})
	}
	return image.Spec{Name: "base/" + p.Name + ":latest", Files: files, User: "65532"}
}
