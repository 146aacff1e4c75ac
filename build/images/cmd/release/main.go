// SPDX-License-Identifier: Apache-2.0

// Command release makes all files of a release, from the sources of one commit: images, programs, manifests, the
// chart, checksums and signatures. The same commit and key give the same files.
package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
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

// options are the command line.
type options struct {
	root, version, revision, key, platforms, ko, kustomize, layers, out string
	// time is in seconds since 1970.
	time int64
}

func parse(args []string) (o options, err error) {
	flags := command.Flags("release", "release -version VERSION -key FILE -revision COMMIT [FLAG]... DIRECTORY")
	flags.StringVar(&o.root, "root", ".", "root of the repository")
	flags.StringVar(&o.version, "version", "", "version, such as v0.1.0")
	flags.StringVar(&o.revision, "revision", "", "commit of the sources")
	flags.Int64Var(&o.time, "time", 0, "time of all files, in seconds since 1970: that of the commit")
	flags.StringVar(&o.key, "key", "", "file with an ECDSA private key in PEM's form, for signatures")
	flags.StringVar(&o.platforms, "platforms", "", "platforms, such as linux/amd64,linux/arm64; all by default")
	flags.StringVar(&o.ko, "ko", "", "program of ko "+release.KoVersion+"; Go builds it by default")
	flags.StringVar(&o.kustomize, "kustomize", kustomize, "command that builds a kustomization")
	flags.StringVar(&o.layers, "layers", "", "directory that keeps layers of images")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() != 1 || o.version == "" || o.key == "" || o.revision == "" || o.layers == "" {
		return o, errors.New("name version, key, commit, layers and the directory of the release")
	}
	o.out = flags.Arg(0)
	return o, nil
}

// run makes the release that the command line describes.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	r := releaser{
		env:     os.Environ(),
		version: o.version, revision: o.revision, modified: time.Unix(o.time, 0), layers: o.layers,
		ko: o.ko, kustomize: o.kustomize, out: o.out, selected: selection(o.platforms),
	}
	if r.root, err = filepath.Abs(o.root); err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	if r.key, err = signature.ReadKey(o.key); err != nil {
		return err
	}
	return r.make(ctx)
}

// selection returns whether a list names a platform. An empty one names all.
func selection(list string) func(downloads.Platform) bool {
	return func(p downloads.Platform) bool {
		return list == "" || slices.Contains(strings.Split(list, ","), p.String())
	}
}

// make makes all files.
func (r releaser) make(ctx context.Context) (err error) {
	if r.scratch, err = os.MkdirTemp("", "fnr-release-"); err != nil {
		return fmt.Errorf("make a directory for the release: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // it is published
		return fmt.Errorf("make the directory of the release: %w", err)
	}
	if err := r.programs(ctx); err != nil {
		return err
	}
	digests, err := r.images(ctx)
	if err != nil {
		return err
	}
	if err := r.manifests(ctx, digests); err != nil {
		return err
	}
	if err := r.documents(); err != nil {
		return err
	}
	return r.sums()
}

// programs makes the programs that users run on their machines.
func (r releaser) programs(ctx context.Context) error {
	var programs []downloads.Program
	for _, program := range downloads.Programs() {
		programs = append(programs, program.On(r.selected))
	}
	return r.maker().Make(ctx, programs)
}

// documents copies the documents that belong to a release.
func (r releaser) documents() error {
	for path, name := range map[string]string{"CHANGELOG.md": "CHANGELOG.md", "docs/install.md": "install.md"} {
		content, err := os.ReadFile(filepath.Join(r.root, path))
		if err != nil {
			return fmt.Errorf("read a document: %w", err)
		}
		if err := r.write(name, content); err != nil {
			return err
		}
	}
	return nil
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
