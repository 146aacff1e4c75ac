// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks random parts of a system with several replicas under load. No caller may fail or get a wrong
// result. Only a pod's owner replica may delete the pod. Limits must hold, and nothing may stay behind.
package chaos
