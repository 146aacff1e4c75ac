// SPDX-License-Identifier: Apache-2.0

// Package verifiers has what verifies signatures by certificates, for programs whose policies may require them. It
// is a package of its own for its modules: fnctl, which has no policy, does without.
package verifiers

import (
	"github.com/krm-function-runner/function-runner/libs/signer"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/certified"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/keyless"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/notation"
)

// New returns the verifiers.
func New() *imageresolver.Verifiers {
	return &imageresolver.Verifiers{
		Keyless:  func(trustedRoot []byte) (certified.Keyless, error) { return keyless.NewRoot(trustedRoot) },
		Notation: func(s *signer.Notation) (certified.Notation, error) { return notation.New(s) },
	}
}
