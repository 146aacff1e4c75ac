// SPDX-License-Identifier: Apache-2.0

// Package teardown tests that a cluster of the test bed leaves no trace on the machine, even if it was killed.
package teardown
