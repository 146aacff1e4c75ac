// SPDX-License-Identifier: Apache-2.0

// Package nameresolver replaces the image names in requests by canonical names, selects tags for version
// constraints, and checks which images callers may use. Evaluators are called only afterwards.
package nameresolver

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
	// Tags returns the tags of a repository, given by its canonical name. known is true if the source contains the
	// repository, even if the repository contains no tags.
	Tags(ctx context.Context, repository string) (tags []string, known bool, err error)
}

// Resolver resolves names.
type Resolver struct {
	// DefaultPrefix is added before image names without a slash, so that users can write short names.
	DefaultPrefix string
	// Tags are the sources of tags for version constraints, in order of preference. The first source with a matching tag
	// applies.
	Tags []TagSource
	// Policy decides which images callers may use.
	Policy imagepolicy.Policy
}

// Resolve returns the canonical name of image if the policy allows it. Unless constraint is empty, the name has the
// highest tag that satisfies constraint. If the name is malformed or no tag satisfies constraint, the error has the
// class fault.Invalid. If no source of tags contains the image's repository, no evaluator serves the image, and the
// class is fault.NotFound. If a registry responds with the status 404, the class is fault.Precondition instead.
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
		name.Digest = "" // the tag that the constraint selects replaces the digest
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
	return r.selectHighestTag(ctx, image, name, wanted)
}

// selectHighestTag returns the image name with the highest tag that satisfies a version constraint. It searches the
// sources of tags in order, until a source has such a tag. It returns their errors only if no source has such a tag.
func (r Resolver) selectHighestTag(
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
			"no tag of %s satisfies %q: the repository has no tags: push an image, or check the image's name",
			name.Repository, wanted)
	default:
		return imagename.Name{}, fault.New(fault.Invalid,
			"no tag of %s satisfies %q: there is %s", name.Repository, wanted, listTags(all))
	}
}

// maxListed is the maximum number of existing tags in the error for an unsatisfied version constraint.
const maxListed = 10

func listTags(tags []string) string {
	if len(tags) > maxListed {
		return strings.Join(tags[:maxListed], ", ") + ", …"
	}
	return strings.Join(tags, ", ")
}
