// SPDX-License-Identifier: Apache-2.0

// Package pods tests the whole system with functions in pods. It tests the microservices in separate pods, and
// function-runner, which runs all services in a single process.
package pods
