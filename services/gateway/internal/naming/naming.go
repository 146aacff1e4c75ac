// SPDX-License-Identifier: Apache-2.0

// Package naming gives a requested image its canonical name, once, before any
// evaluator is asked.
package naming

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/imagepolicy"
)

// TagSource lists tags of repositories.
type TagSource interface {
	// Tags returns the tags of a repository, given by its canonical name, and
	// whether it knows the repository at all: one may be known and have no tags.
	Tags(ctx context.Context, repository string) (tags []string, known bool, err error)
}

// Resolver resolves names.
type Resolver struct {
	// DefaultPrefix is where names without a slash are looked up.
	DefaultPrefix string
	// Tags are asked in turn for the tags of a repository when a request has a
	// version constraint, until one has a tag that fits.
	Tags []TagSource
	// Policy decides which images callers may use.
	Policy imagepolicy.Policy
}

// Resolve returns the canonical name of image with the tag that constraint
// selects, if there is one, provided that the policy allows the image. What is malformed, or matches none of the tags
// there are, is an error of class fault.Invalid; a constraint on a repository that no source
// knows one of class fault.NotFound. A registry's own 404 is not: to callers that class
// means that no evaluator serves the image.
func (r Resolver) Resolve(ctx context.Context, image, constraint string) (imagename.Name, error) {
	name, err := imagename.Parse(image, r.DefaultPrefix)
	if err != nil {
		return imagename.Name{}, err
	}
	wanted, err := tagconstraint.Parse(constraint)
	if err != nil {
		return imagename.Name{}, err
	}
	if !wanted.IsZero() {
		name.Digest = "" // the tag replaces it
	}
	if err := r.Policy.Check(name); err != nil {
		return imagename.Name{}, err
	}
	if wanted.IsZero() {
		return name, nil
	}
	if tag, ok := wanted.Exact(); ok {
		return name.WithTag(tag)
	}
	return r.highest(ctx, image, name, wanted)
}

// highest returns name with the highest tag that is wanted. A source that fails
// counts only if no other has such a tag.
func (r Resolver) highest(
	ctx context.Context, image string, name imagename.Name, wanted tagconstraint.Constraint,
) (imagename.Name, error) {
	var all []string
	var known bool
	var failure error
	for _, source := range r.Tags {
		tags, knows, err := source.Tags(ctx, name.Repository)
		if tag, ok := wanted.Highest(tags); ok && err == nil {
			return name.WithTag(tag)
		}
		all, known, failure = append(all, tags...), known || knows, errors.Join(failure, err)
	}
	switch {
	case failure != nil && fault.Of(failure) == fault.NotFound:
		return imagename.Name{}, fault.New(fault.Precondition,
			"find the highest tag of %s for %q: %w", name.Repository, wanted, failure)
	case failure != nil:
		return imagename.Name{}, fmt.Errorf("find the highest tag of %s for %q: %w", name.Repository, wanted, failure)
	case !known:
		return imagename.Name{}, fault.New(fault.NotFound,
			"function %q not found: no enabled evaluator knows a tag of %s", image, name.Repository)
	case len(all) == 0:
		return imagename.Name{}, fault.New(fault.Invalid,
			"no tag of %s satisfies %q: it has no tags: push an image, or check the image's name", name.Repository, wanted)
	default:
		return imagename.Name{}, fault.New(fault.Invalid,
			"no tag of %s satisfies %q: there is %s", name.Repository, wanted, list(all))
	}
}

// maxListed is how many tags an error names.
const maxListed = 10

// list names tags for users.
func list(tags []string) string {
	if len(tags) > maxListed {
		return strings.Join(tags[:maxListed], ", ") + ", …"
	}
	return strings.Join(tags, ", ")
}
