// SPDX-License-Identifier: Apache-2.0

// Package release builds the images of the programs that users install. It builds them with ko, on base images that
// contain the symbolic links that Porch's manifests need.
package release

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// Program describes the image of a program of the project.
type Program struct {
	Name string
	// Module is the directory of the program's module, relative to the repository's root.
	Module string
	// Package is the program's package, relative to its module's directory.
	Package string
	// Links maps the paths of symbolic links in the image to their targets. The program itself is /ko-app/NAME.
	Links map[string]string
	// Data is true if the image includes the files that `make kodata` writes into a directory next to the program. In
	// the image they are in DataDir.
	Data bool
}

// DataDir is the directory in an image that contains the program's data files.
const DataDir = "/var/run/ko"

// Programs lists the programs that users install.
func Programs() []Program {
	return []Program{
		{Name: "wrapper-server", Module: "wrapper-server", Package: ".", Links: map[string]string{
			// Function pods get the program in one of two ways: an init container runs cp of this image, or the pod
			// mounts the image.
			"/bin/cp": "/ko-app/wrapper-server",
			// Different versions of Porch's pod templates copy different directories.
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

// functionRunnerLinks returns links at the paths that the manifests of different Porch versions use.
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

// DataFiles lists the data files of the image. Their paths are relative to DataDir.
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

// Base describes the base of the program's image. It contains no programs.
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
