// SPDX-License-Identifier: Apache-2.0

// Package bed tests features that only clusters of the test bed (test/cluster) provide. These are registries that
// require credentials or a certificate authority, and the images in these registries.
package bed
