// SPDX-License-Identifier: Apache-2.0

// Package porchmain tests function-runner with the custom resources of Porch's main branch. It installs their
// definitions for the whole cluster, so no other tests may use the cluster at the same time.
package porchmain
