// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/krm-function-runner/function-runner/build/images/bundle"
	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/build/images/provenance"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// Home is the repository of published images, which signatures and manifests name.
const Home = "ghcr.io/krm-function-runner"

// Bundler builds the images of a release for several platforms.
type Bundler struct {
	// Publisher builds them; its repository is that of a registry beside it.
	Publisher Publisher
	// Build is what the images' provenance says.
	Build provenance.Build
	// Key signs the images.
	Key *ecdsa.PrivateKey
	// Functions are the files of the catalog functions, by architecture.
	Functions map[string][]image.File
	// Probe is the wrapper server's program, by architecture.
	Probe map[string]string
}

// variant is a program's image for one platform.
type variant struct {
	platform v1.Platform
	digest   string
	image    v1.Image
	sbom     v1.Image
}

// Bundle adds the images of all programs to a bundle, each with a signature, its provenance and SBOMs. It returns
// their digests by program.
func (b Bundler) Bundle(ctx context.Context, to bundle.Bundle) (map[string]string, error) {
	digests := map[string]string{}
	for _, program := range Programs() {
		var variants []variant
		for _, platform := range b.Build.Platforms {
			v, err := b.build(ctx, program, platform)
			if err != nil {
				return nil, err
			}
			variants = append(variants, v)
		}
		digest, err := b.add(to, program, variants)
		if err != nil {
			return nil, fmt.Errorf("add the image of %s: %w", program.Name, err)
		}
		digests[program.Name] = digest
	}
	return digests, nil
}

// build builds a program's image for one platform, and fetches it with its SBOM.
func (b Bundler) build(ctx context.Context, program Program, platform string) (variant, error) {
	on, err := v1.ParsePlatform(platform)
	if err != nil {
		return variant{}, fmt.Errorf("read the platform %s: %w", platform, err)
	}
	target, err := b.Publisher.pushBase(ctx, program, b.base(program, on.Architecture))
	if err != nil {
		return variant{}, err
	}
	target.Tags = []string{on.OS + "-" + on.Architecture}
	target.Labels, target.SBOM, target.Platform = b.Publisher.labels(program), true, platform
	if err := b.Publisher.Ko.Build(ctx, program, target); err != nil {
		return variant{}, err
	}
	return fetch(ctx, *on, target)
}

// fetch fetches the image at a target, with its SBOM.
func fetch(ctx context.Context, platform v1.Platform, target Target) (variant, error) {
	built, err := pull(ctx, target.Repository+":"+target.Tags[0])
	if err != nil {
		return variant{}, err
	}
	digest, err := built.Digest()
	if err != nil {
		return variant{}, err
	}
	sbom, err := pull(ctx, target.Repository+":"+signature.Tag(digest.String(), "sbom"))
	return variant{platform, digest.String(), built, sbom}, err
}

// base returns the base of a program's image for an architecture.
func (b Bundler) base(program Program, architecture string) image.Spec {
	spec := program.Base()
	spec.OCI, spec.Architecture = true, architecture
	if program.Data {
		spec.Below = b.Functions[architecture]
	}
	if program.Name == "function-runner" {
		spec.Files = append(spec.Files, image.File{
			Path: DataDir + "/grpc-health-probe", Mode: 0o755, Source: b.Probe[architecture],
		})
	}
	return spec
}

func pull(ctx context.Context, image string) (v1.Image, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("name the image %s: %w", image, err)
	}
	pulled, err := remote.Image(reference, remote.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("fetch the image that ko has built: %w", err)
	}
	return pulled, nil
}

// add adds an image for several platforms to a bundle, with what is known about it, and returns its digest.
func (b Bundler) add(to bundle.Bundle, program Program, variants []variant) (digest string, err error) {
	build := b.Build
	if build.SBOMs, err = addSBOMs(to, program, variants); err != nil {
		return "", err
	}
	index := indexOf(variants)
	hash, err := index.Digest()
	if err != nil {
		return "", err
	}
	digest = hash.String()
	signed, attested, err := b.sign(program, digest, build)
	if err != nil {
		return "", err
	}
	return digest, errors.Join(
		to.AddImage(program.Name+":"+signature.Tag(digest, "sig"), signed),
		to.AddImage(program.Name+":"+signature.Tag(digest, "att"), attested),
		to.AddIndex(program.Name+":"+b.Build.Version, index))
}

// sign returns the signature of a program's image, and its provenance.
func (b Bundler) sign(program Program, digest string, build provenance.Build) (signed, attested v1.Image, err error) {
	home, err := name.NewDigest(Home + "/" + program.Name + "@" + digest)
	if err != nil {
		return nil, nil, err
	}
	if signed, err = signature.Add(signature.Empty(), home, b.Key); err != nil {
		return nil, nil, err
	}
	attested, err = provenance.Attest(home, build, b.Key)
	return signed, attested, err
}

// addSBOMs adds the SBOM of each variant to a bundle, and returns their digests.
func addSBOMs(to bundle.Bundle, program Program, variants []variant) (digests []string, err error) {
	for _, v := range variants {
		if err := to.AddImage(program.Name+":"+signature.Tag(v.digest, "sbom"), v.sbom); err != nil {
			return nil, err
		}
		digest, err := v.sbom.Digest()
		if err != nil {
			return nil, err
		}
		digests = append(digests, digest.String())
	}
	return digests, nil
}

// indexOf returns the index of an image for several platforms.
func indexOf(variants []variant) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, v := range variants {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: v.image, Descriptor: v1.Descriptor{Platform: &v.platform},
		})
	}
	return index
}
