// SPDX-License-Identifier: Apache-2.0

// Package porchmain tests function-runner with the custom resources of Porch's main branch. It installs the definitions
// of these resources, which apply to the whole cluster. No other tests may therefore use the cluster at the same time.
package porchmain
