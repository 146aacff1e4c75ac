// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/image"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/program"
)

func publishCommand(o *options) *cobra.Command {
	var tag string
	command := &cobra.Command{
		Use:   "publish REPOSITORY",
		Short: "Build the images of the project's programs and push them to a registry, without a cluster",
		Example: `  # registry.example/fnr/gateway:v1 and the others, with docker's credentials
  cluster publish registry.example/fnr --tag v1`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := o.needSources(); err != nil {
				return err
			}
			return o.publish(command.Context(), command.OutOrStdout(), args[0], tag)
		},
	}
	command.Flags().StringVar(&tag, "tag", "latest", "tag of the images")
	return command
}

// publish pushes the images of all programs that users install.
func (o *options) publish(ctx context.Context, out io.Writer, repository, tag string) error {
	path, root, err := o.findKo(ctx)
	if err != nil {
		return err
	}
	ko := program.Ko{
		Command: func(dir string, args ...string) []string {
			// ko runs in the directory of each program's module.
			return append([]string{"env", "--chdir=" + dir, path}, args...)
		},
		Env:  append(os.Environ(), "VERSION="+tag),
		Root: root,
	}
	if err := o.source().Kodata(ctx); err != nil {
		return err
	}
	for _, p := range program.Published() {
		target, err := o.pushBase(ctx, repository, p)
		if err != nil {
			return err
		}
		target.Tags = []string{tag}
		if _, err := o.source().Program(ctx, p.Module, p.Package); err != nil {
			return err
		}
		if err := ko.Build(ctx, p, target); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s:%s\n", target.Repository, tag)
	}
	return nil
}

// pushBase pushes the base of the program's image.
func (o *options) pushBase(ctx context.Context, repository string, p program.Program) (program.Target, error) {
	to, err := name.NewRepository(repository + "/" + p.Name)
	if err != nil {
		return program.Target{}, fmt.Errorf("name the image of %s: %w", p.Name, err)
	}
	base, err := o.builder().Build(p.Base())
	if err != nil {
		return program.Target{}, err
	}
	auth, err := authn.DefaultKeychain.Resolve(to.Registry)
	if err != nil {
		return program.Target{}, fmt.Errorf("find credentials for %s: %w", to.Registry, err)
	}
	registry := image.Registry{Host: to.RegistryStr(), Auth: auth, Transport: http.DefaultTransport, Secure: true}
	const tag = "base"
	if _, err := registry.Push(ctx, to.RepositoryStr()+":"+tag, base); err != nil {
		return program.Target{}, err
	}
	return program.Target{Repository: to.Name(), Base: to.Tag(tag).Name()}, nil
}
