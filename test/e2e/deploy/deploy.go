// SPDX-License-Identifier: Apache-2.0

// Package deploy tests the manifests in deploy/, and Porch's own manifests, on a cluster of the test bed, which has
// the images.
package deploy
