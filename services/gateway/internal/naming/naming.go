// Package naming gives a requested image its canonical name, once, before any
// evaluator is asked.
package naming

import (
	"context"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
)

// TagSource knows tags of repositories.
type TagSource interface {
	// Tags returns the tags of a repository, given by its canonical name; none if
	// it does not know the repository.
	Tags(ctx context.Context, repository string) ([]string, error)
}

// Resolver resolves names.
type Resolver struct {
	// DefaultPrefix is where names without a slash are looked up.
	DefaultPrefix string
	// Tags are asked for the tags of a repository when a request has a version
	// constraint; the first source that knows the repository decides.
	Tags []TagSource
}

// Resolve returns the canonical name of image with the tag that constraint
// selects, if there is one. What is malformed, or matches no tag, is an error of
// class fault.Invalid.
func (r Resolver) Resolve(ctx context.Context, image, constraint string) (imagename.Name, error) {
	name, err := imagename.Parse(image, r.DefaultPrefix)
	if err != nil {
		return imagename.Name{}, err
	}
	wanted, err := tagconstraint.Parse(constraint)
	if err != nil {
		return imagename.Name{}, err
	}
	if wanted.IsZero() {
		return name, nil
	}
	if tag, ok := wanted.Exact(); ok {
		return name.WithTag(tag)
	}
	tags, err := r.tags(ctx, name.Repository)
	if err != nil {
		return imagename.Name{}, err
	}
	tag, ok := wanted.Highest(tags)
	if !ok {
		return imagename.Name{}, fault.New(fault.Invalid, "no tag of %s satisfies %q: there is %s", name.Repository, constraint, list(tags))
	}
	return name.WithTag(tag)
}

// tags asks the sources in their order.
func (r Resolver) tags(ctx context.Context, repository string) ([]string, error) {
	for _, source := range r.Tags {
		if tags, err := source.Tags(ctx, repository); err != nil || len(tags) > 0 {
			return tags, err
		}
	}
	return nil, nil
}

// maxListed is how many tags an error names.
const maxListed = 10

// list names tags for people.
func list(tags []string) string {
	switch {
	case len(tags) == 0:
		return "none known"
	case len(tags) > maxListed:
		return strings.Join(tags[:maxListed], ", ") + ", …"
	default:
		return strings.Join(tags, ", ")
	}
}
