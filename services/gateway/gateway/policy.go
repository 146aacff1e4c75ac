// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/imagepolicy"
)

// PolicyConfig configures the images that callers may use. The zero value allows all images.
type PolicyConfig struct {
	// Allow are patterns of [repositories that may run](policy.md), such as `ghcr.io/org/**`, or `name=pattern`. They
	// apply to local binaries, sandboxes and pods. All repositories may run if the list is empty.
	Allow []string
	// Deny are patterns of repositories that may not run. They override the allow list.
	Deny []string
	// RequireDigest is true if callers must name images by digest.
	RequireDigest bool `split_words:"true"`
}

// check adds an error to checks for each invalid setting.
func (c PolicyConfig) check(checks *config.Checks) {
	const want = "a list of repository patterns, or of name=pattern"
	_, err := imagepolicy.New(imagepolicy.Lists{Allow: c.Allow})
	checks.That(err == nil, "Policy.Allow", strings.Join(c.Allow, ","), want)
	_, err = imagepolicy.New(imagepolicy.Lists{Deny: c.Deny})
	checks.That(err == nil, "Policy.Deny", strings.Join(c.Deny, ","), want)
}
