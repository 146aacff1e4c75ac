// SPDX-License-Identifier: Apache-2.0

// Package downloads makes the archives of a release: the programs that users run on their machines.
package downloads

import (
	"slices"

	"github.com/krm-function-runner/function-runner/build/images/archive"
)

// Platform is an operating system and an architecture, by Go's names.
type Platform struct{ OS, Arch string }

func (on Platform) String() string { return on.OS + "/" + on.Arch }

// Program is a program that is downloaded.
type Program struct {
	Name string
	// Module is the directory of the program's module, relative to the repository's root.
	Module string
	// Package is the program's package, relative to its module's directory.
	Package string
	// Functions means that the archive has the catalog functions, and their configuration.
	Functions bool
	Platforms []Platform
}

// unix is where every program runs.
var unix = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// Programs lists the programs that are downloaded.
func Programs() []Program {
	return []Program{
		{Name: "fnctl", Module: "fnctl", Package: ".", Platforms: everywhere()},
		{Name: "fnr-images", Module: "build/images", Package: "./cmd/fnr-images", Platforms: everywhere()},
		{Name: "function-runner", Module: "services/function-runner", Package: ".", Functions: true, Platforms: unix},
	}
}

func everywhere() []Platform { return append(slices.Clone(unix), Platform{"windows", "amd64"}) }

// On returns the program with only those of its platforms that are selected.
func (p Program) On(selected func(Platform) bool) Program {
	p.Platforms = slices.DeleteFunc(slices.Clone(p.Platforms), func(on Platform) bool { return !selected(on) })
	return p
}

// Archive returns the name of the program's archive.
func (p Program) Archive(version string, on Platform) string {
	return p.directory(version, on) + on.format()
}

// directory returns the name of the directory that the archive contains.
func (p Program) directory(version string, on Platform) string {
	return p.Name + "_" + version + "_" + on.OS + "_" + on.Arch
}

func (on Platform) format() string {
	if on.OS == "windows" {
		return ".zip"
	}
	return ".tar.gz"
}

// executable returns the name of a program's file.
func (on Platform) executable(name string) string {
	if on.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// within returns files below a directory of their archive.
func within(directory string, files []archive.File) []archive.File {
	files = slices.Clone(files)
	for i := range files {
		files[i].Path = directory + "/" + files[i].Path
	}
	return files
}
