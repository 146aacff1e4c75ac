// SPDX-License-Identifier: Apache-2.0

// Package examples tests how the scripts in examples/ start and end. `make demo` and the tests in e2e/deploy test the
// rendered packages.
package examples
