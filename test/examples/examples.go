// SPDX-License-Identifier: Apache-2.0

// Package examples tests the start and the end of the scripts in examples/. `make demo` and the tests in e2e/deploy
// test the packages that the scripts render.
package examples
