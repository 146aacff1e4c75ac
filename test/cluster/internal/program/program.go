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
	// Module is the folder of the program's module, from the repository's root.
	Module string
	// Package is the program's package, from its module's folder.
	Package string
	// Links are symbolic links in the image, by their path. The program itself
	// is /ko-app/NAME.
	Links map[string]string
	// Data says that the image takes along what `make kodata` puts into a folder
	// beside the program. It is /var/run/ko in the image.
	Data bool
}

// Published lists the programs that people install.
func Published() []Program {
	return slices.DeleteFunc(All(), func(p Program) bool { return p.Module == "test" })
}

// All lists the programs whose images the cluster gets.
func All() []Program {
	return []Program{
		{Name: "toolbox", Module: "test", Package: "./images/toolbox", Links: map[string]string{"/bin/toolbox": "/ko-app/toolbox"}},
		{Name: "wrapper-server", Module: "wrapper-server", Package: ".", Links: map[string]string{
			// Pods copy the program with its image's cp, or mount the image.
			"/bin/cp": "/ko-app/wrapper-server",
			// The two folders that Porch's templates copy, of different versions.
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

// functionRunnerLinks are the paths that Porch's manifests use, of different
// versions.
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

// DataFiles lists the files that the image takes along.
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
		return nil, fmt.Errorf("listing what the image of %s takes along: %w", p.Name, err)
	}
	return files, nil
}

// Base describes the image that the program's image is built on: no user can be
// looked up in it and nothing else be run.
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
	// Command is the command line that runs ko with these arguments in a
	// folder, where it reaches the registry.
	Command func(dir string, args ...string) []string
	// Env is its environment.
	Env []string
	// Root is the repository's root.
	Root string
	// Insecure says that the registry may have no TLS.
	Insecure bool
}

// Target is where an image goes, and what it is built on.
type Target struct {
	Repository, Base string
	Tags             []string
}

// Build builds the program's image and pushes it. All modules are there: who calls
// this built the program before.
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
		"KO_CONFIG_PATH=" + filepath.Join(k.Root, ".ko.yaml"), // which it would look for in the module's folder
		"GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0",
	})
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("building the image of %s with ko: %w\n%s", p.Name, err, output.String())
	}
	return nil
}
