// SPDX-License-Identifier: Apache-2.0

package localrunner

import (
	"context"
	"fmt"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// Fingerprint returns a text that changes if a function's output for the same input may change. It contains the
// name and digest of the image, the environment and the policy. It is empty for a function that may use the
// network, because the function's output may also depend on the network.
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
