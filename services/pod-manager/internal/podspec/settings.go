package podspec

import "slices"

// SettingsVersion identifies what shapes the pods of a function beside the words of their
// template: what is filled in where it says nothing, the builder's settings, and the
// function's own. Pods of another version are to be replaced, as those of another template
// are; a ConfigMap's version says nothing of all that.
//
// What differs from pod to pod is no part of it, nor what a digest stands for. How pods
// are reached is none either: that is no part of a pod, and those that are there can be
// reached in the other way too.
func (b Builder) SettingsVersion(r Request) string {
	return contentHash(r.Template.content, b.MaxMessageBytes, b.PullSecret, b.ByTag, slices.Concat(b.Env, b.networkEnv(r.Function)), r.Concurrency, r.MaxEvaluationTime, r.Prefork, r.Resources)
}
