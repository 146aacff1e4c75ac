// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks random parts of a system with several replicas under load. It tests that no caller fails or
// gets a wrong result, that only a pod's owner replica deletes it, that limits hold, and that nothing stays behind.
package chaos
