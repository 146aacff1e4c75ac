// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks parts of a system with several replicas at random while callers use the system. It tests that
// no caller fails or gets a wrong result, that only owners delete pods, that limits hold, and that nothing is left
// afterwards.
package chaos
