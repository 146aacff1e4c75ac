// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"path/filepath"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// Porch returns images of the Porch programs in dir. The function-runner's image contains no functions. applets is the
// path of our wrapper-server, which can also act as cp and grpc-health-probe. Some images contain it under these names.
func Porch(dir, applets string) []image.Spec {
	probe := func(path string) image.File { return image.File{Path: path, Mode: 0o755, Source: applets} }
	runner := porchImage("function-runner", filepath.Join(dir, "function-runner"))
	runner.Files[0].Path = "/server"
	runner.Entrypoint = []string{"/server"}
	runner.Files = append(runner.Files, probe("/grpc-health-probe"),
		image.File{Path: "/functions", Mode: 0o755, Dir: true},
		image.File{Path: "/config.yaml", Mode: 0o644, Content: "functions: []\n"})
	wrapper := porchImage("wrapper-server", filepath.Join(dir, "wrapper-server"))
	wrapper.Files[0].Path = "/wrapper-server/wrapper-server"
	wrapper.Entrypoint = nil
	wrapper.Files = append(wrapper.Files, probe("/wrapper-server/grpc-health-probe"), probe("/bin/cp"))
	return []image.Spec{
		runner, wrapper,
		porchImage("server", filepath.Join(dir, "porch")),
		// The git-server listens on the same port as in Porch's own image.
		porchImage("git-server", filepath.Join(dir, "git-server"), "--port=8080"),
	}
}

// porchImage returns an image with a statically linked program and a writable /tmp.
func porchImage(name, program string, args ...string) image.Spec {
	spec := staticImage("porch/"+name+":latest", program)
	spec.Files = append(spec.Files, image.File{Path: "/tmp", Mode: 0o777, Dir: true})
	spec.Entrypoint = append(spec.Entrypoint, args...)
	return spec
}
