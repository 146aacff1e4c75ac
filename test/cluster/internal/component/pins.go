// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/krm-function-runner/function-runner/build/images/release"

// kubernetesVersion is the version of Kubernetes. The version of its libraries begins with v0 instead of v1.
const kubernetesVersion = "v1.37.2"

// Containerd returns the component with containerd and its shim. Image volumes require version 2.1 or later.
func Containerd() Component {
	return toolComponent("containerd", "v2.3.7", "github.com/containerd/containerd/v2",
		"./cmd/containerd", "./cmd/containerd-shim-runc-v2")
}

// Ko returns the component with ko, a builder for images of Go programs.
func Ko() Component {
	return toolComponent("ko", release.KoVersion, "github.com/google/ko", ".")
}
