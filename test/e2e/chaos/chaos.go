// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks a system of several replicas again and again, at random, while callers use
// it. It tests that no caller fails or gets a wrong result, that pods are deleted by their owners
// only, and that limits hold and nothing is left afterwards.
package chaos
