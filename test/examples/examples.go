// SPDX-License-Identifier: Apache-2.0

// Package examples tests how the scripts in examples/ start and stop. `make demo` and the tests in e2e/deploy test
// the packages that the scripts render.
package examples
