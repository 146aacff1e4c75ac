// SPDX-License-Identifier: Apache-2.0

// Package pods tests functions in pods with the whole system. It tests both forms of the system: services in separate
// pods, and all services in a single process.
package pods
