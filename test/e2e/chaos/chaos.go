// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks random parts of a system with several replicas under load. It checks that no caller fails or
// gets a wrong result, and that limits hold. Only the owner replica of a pod may delete the pod. Unused pods and the
// resources of finished calls must be released.
package chaos
