// SPDX-License-Identifier: Apache-2.0

// Package deploy tests the manifests in deploy/ and Porch's own manifests on a cluster. The cluster must be a test
// bed (test/cluster), whose registries contain the images.
package deploy
