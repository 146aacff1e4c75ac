// Package images knows what images are, as the image-resolver said a moment ago.
package images

import (
	"context"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/recall"
)

// maxKnown bounds how many images are remembered.
const maxKnown = 10_000

// Resolver is the part of the image-resolver's client that is needed.
type Resolver interface {
	// ResolveImage has errors with fault classes.
	ResolveImage(ctx context.Context, req *imageresolverv1.ResolveImageRequest) (*imageresolverv1.ResolveImageResponse, error)
}

// Memory asks a Resolver, and remembers its answers. Use [New].
type Memory struct {
	answers *recall.Memory[wanted, *imageresolverv1.ResolveImageResponse]
}

// wanted is what is asked for.
type wanted struct{ image, tagConstraint string }

// New returns a memory with nothing in it.
func New(resolver Resolver) *Memory {
	return &Memory{answers: recall.New(recall.Config[wanted, *imageresolverv1.ResolveImageResponse]{
		Ask: func(ctx context.Context, w wanted) (*imageresolverv1.ResolveImageResponse, error) {
			return resolver.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: w.image, TagConstraint: w.tagConstraint})
		},
		Size:    func(*imageresolverv1.ResolveImageResponse) int { return 1 },
		MaxSize: maxKnown,
	})}
}

// Recall returns what is known of an image without waiting for anybody, if that is good
// enough. It is shared: it must not be changed.
func (m *Memory) Recall(image, tagConstraint string) (*imageresolverv1.ResolveImageResponse, bool) {
	return m.answers.Recall(wanted{image, tagConstraint})
}

// ResolveImage says what an image is, and waits for the image-resolver to say so unless
// that was a moment ago, or it is away. The answer is shared: it must not be changed.
// Errors are those of the image-resolver and of ctx.
func (m *Memory) ResolveImage(ctx context.Context, image, tagConstraint string) (*imageresolverv1.ResolveImageResponse, error) {
	return m.answers.Get(ctx, wanted{image, tagConstraint})
}

// Run waits for ctx to end, then ends what goes on in the background.
func (m *Memory) Run(ctx context.Context) error { return m.answers.Run(ctx) }
