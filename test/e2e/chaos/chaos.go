// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks random parts of a system with several replicas under load. It checks that no caller fails or
// gets a wrong result, that only a pod's owner replica deletes the pod, that limits hold, and that unused pods and the
// resources of finished calls are released.
package chaos
