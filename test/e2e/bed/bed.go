// SPDX-License-Identifier: Apache-2.0

// Package bed tests features of the test bed's clusters that other clusters lack: registries that require credentials
// or a certificate authority, and the images in them.
package bed
