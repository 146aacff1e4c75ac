// SPDX-License-Identifier: Apache-2.0

// Command fnr-images verifies the images of a release that was downloaded, and copies them to a registry, with
// docker's credentials.
package main

import (
	"context"
	"errors"
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
	flags := command.Flags("fnr-images", "fnr-images -key FILE DIRECTORY [REPOSITORY]\n\n"+
		"Verifies digests, signatures, provenance and SBOMs of the images in DIRECTORY,\n"+
		"and copies all of them to REPOSITORY, such as registry.example/fnr.")
	file := flags.String("key", "", "file with the public key that releases are signed with: cosign.pub")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || flags.NArg() < 1 || flags.NArg() > 2 {
		return errors.New("name the key and the directory of the images: " +
			"fnr-images -key cosign.pub images_v0.1.0 [registry.example/fnr]")
	}
	images, err := openVerified(flags.Arg(0), *file, out)
	if err != nil || flags.NArg() == 1 {
		return err
	}
	return images.Push(ctx, flags.Arg(1), out, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// openVerified returns the images of a directory after it has verified them with the key in a file, and writes what
// each was built from.
func openVerified(dir, keyFile string, out io.Writer) (bundle.Bundle, error) {
	key, err := signature.ReadPublicKey(keyFile)
	if err != nil {
		return bundle.Bundle{}, err
	}
	images, err := bundle.Open(dir)
	if err != nil {
		return bundle.Bundle{}, err
	}
	verified, err := images.Verify(key)
	if err != nil {
		return bundle.Bundle{}, err
	}
	for _, v := range verified {
		if _, err := fmt.Fprintf(out, "verified %s@%s, built from %s\n", v.Name, v.Digest, v.Revision); err != nil {
			return bundle.Bundle{}, err
		}
	}
	return images, nil
}
