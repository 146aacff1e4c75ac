// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/imagecopy"
)

// newCopies pushes copies of an image that no node has pulled to the private registry, and returns
// their repository. Each copy has one of the tags.
func newCopies(t *testing.T, of string, tags ...string) (repository string) {
	t.Helper()
	private := s.Registry(t, "private")
	repository = "e2e/" + strings.ToLower(rand.Text())
	login := remote.WithAuth(&authn.Basic{Username: private.Username, Password: private.Password})
	for _, tag := range tags {
		copied := repository + ":" + tag
		imagecopy.Push(t, of, private.Host+"/"+copied, imagecopy.Label(copied), login)
	}
	return repository
}
