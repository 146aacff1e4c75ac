// Package registrytags caches the tags that the image-resolver lists.
package registrytags

import (
	"context"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/recall"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// maxKnown bounds how many tags and names of repositories are remembered.
const maxKnown = 200_000

// Lister is the part of the image-resolver's client that is needed.
type Lister interface {
	ListTags(ctx context.Context, req *imageresolverv1.ListTagsRequest) (*imageresolverv1.ListTagsResponse, error)
}

// Source is a naming.TagSource of the tags in registries. Use [New].
type Source struct {
	tags *recall.Memory[string, []string]
}

// New returns a source with an empty cache.
func New(lister Lister) *Source {
	return &Source{tags: recall.New(recall.Config[string, []string]{
		Ask: func(ctx context.Context, repository string) ([]string, error) {
			resp, err := lister.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
			return resp.GetTags(), rpcfault.FromConnect(err)
		},
		Size:    func(tags []string) int { return 1 + len(tags) },
		MaxSize: maxKnown,
	})}
}

// Tags implements naming.TagSource: a repository that its registry does not know is an
// error. The answer is shared: it must not be changed.
func (s *Source) Tags(ctx context.Context, repository string) (tags []string, known bool, err error) {
	if tags, ok := s.tags.Recall(repository); ok {
		return tags, true, nil
	}
	tags, err = s.tags.Get(ctx, repository)
	return tags, err == nil, err
}

// Run waits for ctx to end, then ends the refreshes in the background.
func (s *Source) Run(ctx context.Context) error { return s.tags.Run(ctx) }
