// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"

	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
)

// conformance returns the images for the evaluators' conformance tests. All images contain the same program, whose
// first argument selects a behaviour.
func (s Source) conformance(ctx context.Context) ([]image.Spec, error) {
	program, err := s.Program(ctx, "libs", "./testing/testfn/cmd/testfn")
	if err != nil {
		return nil, err
	}
	var specs []image.Spec
	for _, behaviour := range conformance.Behaviours() {
		spec := functionImage(conformance.Repository(behaviour)+":v1", program)
		switch behaviour {
		case conformance.Missing:
			spec.Entrypoint = []string{"/usr/local/bin/missing"}
		case conformance.NotExecutable:
			spec.Files[0].Mode = 0o644
		default:
			spec.Entrypoint = append(spec.Entrypoint, behaviour)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}
