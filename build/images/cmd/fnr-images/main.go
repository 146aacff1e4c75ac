// SPDX-License-Identifier: Apache-2.0

// Command fnr-images verifies the images of a release that was downloaded, and copies them to a registry, with
// docker's credentials.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/build/images/bundle"
	"github.com/krm-function-runner/function-runner/build/images/internal/command"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

func main() {
	command.Run("fnr-images", func(ctx context.Context, args []string) error { return run(ctx, args, os.Stdout) })
}

// run verifies the images, and pushes them if the command line names a repository.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fnr-images", flag.ContinueOnError)
	file := flags.String("key", "", "file with the public key that releases are signed with: cosign.pub")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: fnr-images -key FILE DIRECTORY [REPOSITORY]\n\n"+
			"Verifies digests, signatures, provenance and SBOMs of the images in DIRECTORY,\n"+
			"and copies all of them to REPOSITORY, such as registry.example/fnr.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || flags.NArg() < 1 || flags.NArg() > 2 {
		return errors.New("name the key and the directory of the images: " +
			"fnr-images -key cosign.pub images_v0.1.0 [registry.example/fnr]")
	}
	key, err := signature.ReadPublicKey(*file)
	if err != nil {
		return err
	}
	images, err := bundle.Open(flags.Arg(0))
	if err != nil {
		return err
	}
	verified, err := images.Verify(key)
	if err != nil {
		return err
	}
	for _, v := range verified {
		if _, err := fmt.Fprintf(out, "verified %s@%s, built from %s\n", v.Name, v.Digest, v.Revision); err != nil {
			return err
		}
	}
	if flags.NArg() == 1 {
		return nil
	}
	return images.Push(ctx, flags.Arg(1), out, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
