// SPDX-License-Identifier: Apache-2.0

package localrunner

import (
	"context"
	"fmt"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// Fingerprint returns a key for caching the outputs of a function. Callers must add the function's input to the key.
// The key contains everything else that affects the output: the image's name and digest, the environment and the
// policy. If the function may use the network, the key is empty, because the output may then depend on other systems.
func (r *Runner) Fingerprint(ctx context.Context, image, tag string) (string, error) {
	resolved, err := r.images.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image, TagConstraint: tag})
	if err != nil {
		return "", err
	}
	name, err := imagename.Parse(resolved.GetReference(), "")
	if err != nil {
		return "", err
	}
	network, err := imagename.ParsePatterns(r.cfg.FunctionNetwork)
	if err != nil || network.Match(name) {
		return "", err
	}
	return fmt.Sprintf("%q", []any{image, tag, resolved.GetDigest(), r.cfg.Environment, r.cfg.Policy}), nil
}
