// SPDX-License-Identifier: Apache-2.0

// Package deploy tests the manifests in deploy/ and Porch's own manifests. It needs a cluster of the test bed
// (test/cluster), because this cluster's registries contain the images.
package deploy
