// SPDX-License-Identifier: Apache-2.0

// Package teardown tests that a test bed (test/cluster) leaves no trace on the machine, even after it was killed.
package teardown
