// SPDX-License-Identifier: Apache-2.0

// Package pods tests functions in pods, through the whole system: its services deployed as separate
// pods, and all in one process.
package pods
