// SPDX-License-Identifier: Apache-2.0

// Package bed tests features that only a test bed (test/cluster) provides: registries that require credentials or a
// certificate authority, and the images in these registries.
package bed
