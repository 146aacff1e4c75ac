// SPDX-License-Identifier: Apache-2.0

// Command sign signs the images of a release that are in a registry, in cosign's form, with docker's
// credentials. It prints the signed images by digest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/build/images/internal/command"
	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

func main() {
	command.Run("sign", func(ctx context.Context, args []string) error { return run(ctx, args, os.Stdout) })
}

// run signs the images that the command line selects.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sign", flag.ContinueOnError)
	file := flags.String("key", "", "file with an ECDSA private key in PEM's form")
	tag := flags.String("tag", "", "tag of the images")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: sign -key FILE -tag TAG REPOSITORY, such as registry.example/fnr")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *file == "" || *tag == "" {
		return errors.New("name the key, the tag and the repository of the images: " +
			"sign -key FILE -tag TAG registry.example/fnr")
	}
	key, err := signature.ReadKey(*file)
	if err != nil {
		return err
	}
	credentials := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	for _, program := range release.Programs() {
		image, err := name.NewTag(flags.Arg(0) + "/" + program.Name + ":" + *tag)
		if err != nil {
			return fmt.Errorf("name the image of %s: %w", program.Name, err)
		}
		found, err := remote.Head(image, credentials, remote.WithContext(ctx))
		if err != nil {
			return fmt.Errorf("find the digest of %s: %w", image, err)
		}
		signed := image.Context().Digest(found.Digest.String())
		if err := signature.Sign(ctx, signed, key, credentials); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, signed); err != nil {
			return err
		}
	}
	return nil
}
