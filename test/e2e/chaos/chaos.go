// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks random parts of a system with several replicas while callers use the system. It tests that
// no caller fails or gets a wrong result, that only the replica that owns a pod deletes it, that limits hold, and
// that nothing is left afterwards.
package chaos
