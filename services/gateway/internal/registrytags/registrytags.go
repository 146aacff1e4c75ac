// Package registrytags asks the image-resolver for the tags of a repository.
package registrytags

import (
	"context"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// Lister is the part of the image-resolver's client that is needed.
type Lister interface {
	ListTags(ctx context.Context, req *imageresolverv1.ListTagsRequest) (*imageresolverv1.ListTagsResponse, error)
}

// Source is a naming.TagSource that knows what registries know.
type Source struct{ Lister Lister }

// Tags implements naming.TagSource.
func (s Source) Tags(ctx context.Context, repository string) ([]string, error) {
	resp, err := s.Lister.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
	if err != nil {
		return nil, rpcfault.FromConnect(err)
	}
	return resp.GetTags(), nil
}
