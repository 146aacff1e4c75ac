// SPDX-License-Identifier: Apache-2.0

package podspec

import "slices"

// SettingsVersion identifies what shapes the pods of a function beside the text of their
// template: the defaults that fill its gaps, the builder's settings, and the function's own.
// Pods of another version are outdated, like pods of another template; a ConfigMap's version
// covers none of this.
//
// What differs from pod to pod is not part of it, nor what a digest stands for. The endpoint
// setting is not either: it is not part of a pod, and existing pods can be reached both ways.
func (b Builder) SettingsVersion(r Request) string {
	return contentHash(r.Template.content, b.MaxMessageBytes, b.PullSecret, b.ByTag, slices.Concat(b.Env, b.networkEnv(r.Function)), r.Concurrency, r.MaxEvaluationTime, r.Prefork, r.Resources)
}
