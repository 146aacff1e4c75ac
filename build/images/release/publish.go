// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// Publisher builds the images of all programs of this project and pushes them to a registry. It reads the
// registry's credentials from docker's configuration file.
type Publisher struct {
	// Repository is the common prefix of the images' repositories, such as registry.example/fnr.
	Repository string
	// Tag is the tag of all images. Revision is the Git commit of their source.
	Tag, Revision string
	// Ko builds the images.
	Ko Ko
	// Layers is the directory where the layers of the base images are cached.
	Layers string
	// Out receives the names of the pushed images, one name per line.
	Out io.Writer
}

// Publish builds and pushes the images.
func (p Publisher) Publish(ctx context.Context) error {
	for _, program := range Programs() {
		target, err := p.pushBase(ctx, program, program.Base())
		if err != nil {
			return err
		}
		target.Tags = []string{p.Tag}
		target.Labels = p.userLabels(program)
		target.SBOM = true
		if err := p.Ko.Build(ctx, program, target); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.Out, "%s:%s\n", target.Repository, p.Tag); err != nil {
			return err
		}
	}
	return nil
}

// userLabels returns the OCI labels of a program's image for its users, such as the version and the license.
func (p Publisher) userLabels(program Program) map[string]string {
	const key = "org.opencontainers.image."
	labels := map[string]string{
		key + "title":    program.Name,
		key + "version":  p.Tag,
		key + "source":   "https://github.com/krm-function-runner/function-runner",
		key + "licenses": "Apache-2.0",
	}
	if p.Revision != "" {
		labels[key+"revision"] = p.Revision
	}
	return labels
}

func (p Publisher) pushBase(ctx context.Context, program Program, spec image.Spec) (Target, error) {
	to, err := name.NewRepository(p.Repository + "/" + program.Name)
	if err != nil {
		return Target{}, fmt.Errorf("name the image of %s: %w", program.Name, err)
	}
	base, err := image.Builder{Dir: p.Layers}.Build(spec)
	if err != nil {
		return Target{}, err
	}
	auth, err := authn.DefaultKeychain.Resolve(to.Registry)
	if err != nil {
		return Target{}, fmt.Errorf("find credentials for %s: %w", to.Registry, err)
	}
	registry := image.Registry{Host: to.RegistryStr(), Auth: auth, Transport: http.DefaultTransport, Secure: true}
	const tag = "base"
	if _, err := registry.Push(ctx, to.RepositoryStr()+":"+tag, base); err != nil {
		return Target{}, err
	}
	return Target{Repository: to.Name(), Base: to.Tag(tag).Name()}, nil
}
