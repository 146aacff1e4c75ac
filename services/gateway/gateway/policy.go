// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/imagepolicy"
)

// PolicyConfig configures which images callers may use. Its zero value allows all images.
type PolicyConfig struct {
	// Allow and Deny are patterns of repositories, such as ghcr.io/org/**, or name=pattern.
	Allow []string
	Deny  []string
	// RequireDigest rejects images that are not named by digest.
	RequireDigest bool `split_words:"true"`
}

// check adds the problems of the settings.
func (c PolicyConfig) check(checks *config.Checks) {
	const want = "a list of repository patterns, or of name=pattern"
	_, err := imagepolicy.New(imagepolicy.Lists{Allow: c.Allow})
	checks.That(err == nil, "Policy.Allow", strings.Join(c.Allow, ","), want)
	_, err = imagepolicy.New(imagepolicy.Lists{Deny: c.Deny})
	checks.That(err == nil, "Policy.Deny", strings.Join(c.Deny, ","), want)
}
