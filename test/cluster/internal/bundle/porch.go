// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"path/filepath"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// Porch returns the images of Porch's programs in a directory.
func Porch(dir string) []image.Spec {
	return []image.Spec{
		porchImage("server", filepath.Join(dir, "porch")),
		// Its port is that of Porch's own image.
		porchImage("git-server", filepath.Join(dir, "git-server"), "--port=8080"),
	}
}

// porchImage is a static program that may write to /tmp.
func porchImage(name, program string, args ...string) image.Spec {
	spec := static("porch/"+name+":latest", program)
	spec.Files = append(spec.Files, image.File{Path: "/tmp", Mode: 0o777, Dir: true})
	spec.Entrypoint = append(spec.Entrypoint, args...)
	return spec
}
