// SPDX-License-Identifier: Apache-2.0

// Package examples tests that the scripts in examples/ start and stop correctly. `make demo` and the tests in
// e2e/deploy test the kpt packages that the scripts render.
package examples
