// SPDX-License-Identifier: Apache-2.0

// Package pods tests functions in pods with the whole system. It tests both forms of the system: the microservices
// in separate pods, and function-runner, which runs all services in a single process.
package pods
