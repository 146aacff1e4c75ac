// SPDX-License-Identifier: Apache-2.0

// Command release makes all files of a release, from the sources of one commit: images, programs, manifests, the
// chart, checksums and signatures. The same commit and key give the same files.
package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/build/images/archive"
	"github.com/krm-function-runner/function-runner/build/images/downloads"
	"github.com/krm-function-runner/function-runner/build/images/internal/command"
	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

func main() { command.Run("release", run) }

// releaser makes the files of a release.
type releaser struct {
	root, version, revision string
	// env is the environment of commands.
	env      []string
	modified time.Time
	key      *ecdsa.PrivateKey
	// selected reports whether the release is for a platform.
	selected func(downloads.Platform) bool
	// layers has the layers of images, also of earlier releases; scratch is removed at the end.
	layers, scratch string
	// ko is a program; without one, Go builds it. kustomize is a command line that builds a directory.
	ko, kustomize string
	out           string
}

// run makes the release that the command line describes.
func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "root of the repository")
	version := flags.String("version", "", "version, such as v0.1.0")
	revision := flags.String("revision", "", "commit of the sources")
	modified := flags.Int64("time", 0, "time of all files, in seconds since 1970: that of the commit")
	key := flags.String("key", "", "file with an ECDSA private key in PEM's form, for signatures")
	platforms := flags.String("platforms", "", "platforms, such as linux/amd64,linux/arm64; all by default")
	ko := flags.String("ko", "", "program of ko "+release.KoVersion+"; Go builds it by default")
	kustomize := flags.String("kustomize", kustomize, "command that builds a kustomization")
	layers := flags.String("layers", "", "directory that keeps layers of images")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: release -version VERSION -key FILE -revision COMMIT [FLAG]... DIRECTORY")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *version == "" || *key == "" || *revision == "" || *layers == "" {
		return errors.New("name version, key, commit, layers and the directory of the release")
	}
	r := releaser{
		env:     os.Environ(),
		version: *version, revision: *revision, modified: time.Unix(*modified, 0), layers: *layers,
		ko: *ko, kustomize: *kustomize, out: flags.Arg(0), selected: selection(*platforms),
	}
	if r.root, err = filepath.Abs(*root); err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	if r.key, err = signature.ReadKey(*key); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp("", "fnr-release-"); err != nil {
		return fmt.Errorf("make a directory for the release: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()
	return r.make(ctx)
}

// selection returns whether a list names a platform. An empty one names all.
func selection(list string) func(downloads.Platform) bool {
	return func(p downloads.Platform) bool {
		return list == "" || slices.Contains(strings.Split(list, ","), p.String())
	}
}

// make makes all files.
func (r releaser) make(ctx context.Context) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // it is published
		return fmt.Errorf("make the directory of the release: %w", err)
	}
	var programs []downloads.Program
	for _, program := range downloads.Programs() {
		programs = append(programs, program.On(r.selected))
	}
	if err := r.maker().Make(ctx, programs); err != nil {
		return err
	}
	digests, err := r.images(ctx)
	if err != nil {
		return err
	}
	if err := r.manifests(ctx, digests); err != nil {
		return err
	}
	for path, name := range map[string]string{"CHANGELOG.md": "CHANGELOG.md", "docs/install.md": "install.md"} {
		content, err := os.ReadFile(filepath.Join(r.root, path))
		if err != nil {
			return fmt.Errorf("read a document: %w", err)
		}
		if err := r.write(name, content); err != nil {
			return err
		}
	}
	return r.sums()
}

// maker returns the maker of the programs that users run on their machines.
func (r releaser) maker() downloads.Maker {
	return downloads.Maker{Root: r.root, Env: r.env, Version: r.version, Modified: r.modified, Out: r.out}
}

// archive writes all files of a directory into an archive, in which the directory has another name.
func (r releaser) archive(name, dir, as string, write archiver) error {
	files, err := archive.Tree(dir, as)
	if err != nil {
		return err
	}
	return archive.Create(filepath.Join(r.out, name), write, files, r.modified)
}
