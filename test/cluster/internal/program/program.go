// SPDX-License-Identifier: Apache-2.0

// Package program makes images of the project's own programs with ko.
package program

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/image"
)

// Program is one of the project's own programs.
type Program struct {
	Name string
	// Module is the directory of the program's module, relative to the repository's root.
	Module string
	// Package is the program's package, relative to its module's directory.
	Package string
	// Links are symbolic links in the image, by their path. The program itself
	// is /ko-app/NAME.
	Links map[string]string
	// Data means that the image includes what `make kodata` puts into a directory beside the
	// program. It is /var/run/ko in the image.
	Data bool
}

// Published lists the programs that users install.
func Published() []Program {
	return slices.DeleteFunc(All(), func(p Program) bool { return p.Module == "test" })
}

// All lists the programs whose images the cluster gets.
func All() []Program {
	return []Program{
		{
			Name: "toolbox", Module: "test", Package: "./images/toolbox",
			Links: map[string]string{"/bin/toolbox": "/ko-app/toolbox"},
		},
		{Name: "wrapper-server", Module: "wrapper-server", Package: ".", Links: map[string]string{
			// Pods copy the program with its image's cp, or mount the image.
			"/bin/cp": "/ko-app/wrapper-server",
			// The two directories that Porch's templates copy, in different versions.
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

// functionRunnerLinks are the paths that Porch's manifests use, in different versions.
func functionRunnerLinks() map[string]string {
	links := map[string]string{}
	for _, dir := range []string{"", "/home/nonroot"} {
		links[dir+"/server"] = "/ko-app/function-runner"
		for _, name := range []string{"config.yaml", "functions", "grpc-health-probe"} {
			links[dir+"/"+name] = "/var/run/ko/" + name
		}
	}
	return links
}

// DataFiles lists the data files in the image.
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

// Base describes the image that the program's image is built on: no user can be looked up in it,
// and no other program can run in it.
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

// Ko builds images.
type Ko struct {
	// Command returns the command line that runs ko with these arguments in a directory from which
	// it reaches the registry.
	Command func(dir string, args ...string) []string
	// Env is its environment.
	Env []string
	// Root is the repository's root.
	Root string
	// Insecure means that the registry may be without TLS.
	Insecure bool
}

// Target is the destination of an image, and its base.
type Target struct {
	Repository, Base string
	Tags             []string
}

// Build builds the program's image and pushes it. All modules are in the cache: the caller has
// built the program before.
func (k Ko) Build(ctx context.Context, p Program, to Target) error {
	args := []string{"build", "--bare", "--sbom=none", "--tags=" + strings.Join(to.Tags, ",")}
	if k.Insecure {
		args = append(args, "--insecure-registry")
	}
	line := k.Command(filepath.Join(k.Root, p.Module), append(args, p.Package)...)
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Env = slices.Concat(k.Env, []string{
		"KO_DOCKER_REPO=" + to.Repository,
		"KO_DEFAULTBASEIMAGE=" + to.Base,
		"KO_CONFIG_PATH=" + filepath.Join(k.Root, ".ko.yaml"), // ko would look for it in the module's directory
		"GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0",
	})
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("build the image of %s with ko: %w\n%s", p.Name, err, output.String())
	}
	return nil
}
