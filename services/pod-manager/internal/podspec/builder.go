// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
)

// Builder builds pods and Services. It may be shared.
type Builder struct {
	// Namespace is where they live.
	Namespace string
	// MaxMessageBytes bounds requests and responses of the wrapper server.
	MaxMessageBytes int
	// PullSecret is the name of the pull secret for functions that need one; empty
	// means none is attached.
	PullSecret string
	// AlwaysPullSecret attaches it to all pods: the images that come with a template, such as
	// the wrapper server's, may be in registries that require credentials too. A kubelet shows
	// them to no other registry.
	AlwaysPullSecret bool
	// Args are arguments for the wrapper server, as --flag=value. Flags that the template sets take precedence.
	Args []string
	// Env are variables for the wrapper server, where the template sets no others of
	// these names. Those with the prefix OTEL_ are kept from the function.
	Env []corev1.EnvVar
	// Network are the images whose functions may use the network.
	Network imagename.Patterns
}

// Pod returns the pod that r asks for. It belongs to the caller.
func (b Builder) Pod(r Request) *corev1.Pod {
	pod := r.Template.podWith(r.Overrides)
	pod.ObjectMeta = b.metadata(pod.ObjectMeta, r.Name, r)
	pod.Annotations[AnnotationTemplateVersion] = r.Template.version
	pod.Annotations[AnnotationSettingsVersion] = b.SettingsVersion(r)
	pod.Annotations[AnnotationReclaimAfter] = strconv.FormatInt(r.ReclaimAfter.Unix(), 10)
	if _, set := pod.Annotations[AnnotationSafeToEvict]; !set {
		pod.Annotations[AnnotationSafeToEvict] = "true"
	}
	pod.Status = corev1.PodStatus{}

	b.function(pod, r)
	selectArchitecture(&pod.Spec, r.Function.Architecture)
	spread(pod, podname.PoolID(r.Function.Reference, r.Function.Digest))
	if b.PullSecret != "" && (b.AlwaysPullSecret || r.Function.PullSecret) {
		addPullSecret(&pod.Spec, corev1.LocalObjectReference{Name: b.PullSecret})
	}
	return pod
}

// selectArchitecture lets the pod run only on nodes on which its image can run, unless the template
// chooses. The image is pinned to one architecture, or its command is that of one.
func selectArchitecture(spec *corev1.PodSpec, architecture string) {
	if _, set := spec.NodeSelector[corev1.LabelArchStable]; set || architecture == "" {
		return
	}
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	spec.NodeSelector[corev1.LabelArchStable] = architecture
}

// spread has the scheduler prefer nodes with fewer pods of the function: the loss of a node ends few of
// them. It is a preference, since a pod beside another one serves better than none. What the template
// says about where pods run stays alone.
func spread(pod *corev1.Pod, pool string) {
	pod.Labels[LabelPool] = pool
	affinity := pod.Spec.Affinity
	if len(pod.Spec.TopologySpreadConstraints) > 0 || affinity != nil && affinity.PodAntiAffinity != nil {
		return
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelPool: pool}},
	}}
}

// addPullSecret adds a pull secret, unless the template names it.
func addPullSecret(spec *corev1.PodSpec, secret corev1.LocalObjectReference) {
	if !slices.Contains(spec.ImagePullSecrets, secret) {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, secret)
	}
}

// SettingsVersion identifies what shapes the pods of a function beside the text of their
// template: the defaults that fill its gaps, the builder's settings, and the function's own.
// Pods of another version are outdated, like pods of another template; a ConfigMap's version
// covers none of this.
//
// What differs from pod to pod is not part of it, nor what a digest stands for. The endpoint
// setting is not either: it is not part of a pod, and existing pods can be reached both ways.
func (b Builder) SettingsVersion(r Request) string {
	shape := []any{
		r.Template.content, b.MaxMessageBytes, b.PullSecret, b.Env, slices.Concat(b.Args, b.networkArgs(r.Function)),
		r.Concurrency, r.MaxEvaluationTime, r.Prefork, r.Resources,
	}
	if r.Overrides != nil { // without them, the version is that of programs that did not have them
		shape = append(shape, r.Overrides)
	}
	if r.TLS != nil {
		shape = append(shape, r.TLS)
	}
	return contentHash(shape...)
}

// function completes the function container. The settings of the wrapper server are arguments, which an image
// cannot set. An image's variables lie beneath the pod's: the server uses only variables of the pod, whose names it
// gets as arguments. Variables from envFrom, and from references that may be missing, are not among them.
func (b Builder) function(pod *corev1.Pod, r Request) {
	c := &pod.Spec.Containers[0]
	c.Image = pinned(r.Function)
	fillPullPolicy(&c.ImagePullPolicy, c.Image)
	setMissing(c, b.Env)
	c.Args = append(c.Args, "--port", strconv.Itoa(Port), "--max-request-body-size", strconv.Itoa(b.MaxMessageBytes))
	outlive(&pod.Spec, r.MaxEvaluationTime)
	settings := slices.Concat(
		processes(r), b.networkArgs(r.Function), b.Args, shutdownTimeout(&pod.Spec), b.identify(pod, r))
	for _, arg := range settings { // the template's come first, then the function's own
		if !setsFlag(c.Args, arg) {
			c.Args = append(c.Args, arg)
		}
	}
	if names := setNames(c.Env); len(names) > 0 {
		c.Args = append(c.Args, "--environment="+strings.Join(names, ","))
	}
	c.Args = append(c.Args, "--")
	for _, arg := range r.Function.Command {
		c.Args = append(c.Args, strings.ReplaceAll(arg, "$", "$$")) // else $(NAME) would become the variable's value
	}
	fillUser(c, pod, r.Function.User)
	if r.Resources != nil {
		c.Resources = overlay(c.Resources, *r.Resources)
	}
}

// setMissing adds the variables that a template has not set.
func setMissing(c *corev1.Container, env []corev1.EnvVar) {
	for _, variable := range env {
		if !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == variable.Name }) {
			c.Env = append(c.Env, *variable.DeepCopy())
		}
	}
}

// setNames returns the names of the variables that a container has in any case.
func setNames(env []corev1.EnvVar) (names []string) {
	for _, v := range env {
		if !optional(v.ValueFrom) && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// optional reports whether a variable is left out if what it refers to is missing.
func optional(source *corev1.EnvVarSource) bool {
	set := func(missing *bool) bool { return missing != nil && *missing }
	return source != nil && (source.SecretKeyRef != nil && set(source.SecretKeyRef.Optional) ||
		source.ConfigMapKeyRef != nil && set(source.ConfigMapKeyRef.Optional) ||
		source.FileKeyRef != nil && set(source.FileKeyRef.Optional))
}

// setsFlag reports whether arguments have the flag of one more argument, which is written as --flag=value.
func setsFlag(args []string, more string) bool {
	flag := func(arg string) string {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-") && flag(arg) == flag(more)
	})
}

// processes are the arguments that bound the processes of the function in the wrapper server:
// how many, and for how long.
func processes(r Request) []string {
	args := []string{"--concurrency=" + strconv.Itoa(r.Concurrency)}
	if r.MaxEvaluationTime > 0 {
		args = append(args, "--max-evaluation-time="+r.MaxEvaluationTime.String())
	}
	if r.Prefork != nil {
		args = append(args, "--prefork="+strconv.Itoa(*r.Prefork))
	}
	return args
}

// networkArgs is the argument that lets the function use the network; none if it may not.
func (b Builder) networkArgs(f Function) []string {
	name, err := imagename.Parse(f.Reference, "")
	if err != nil || !b.Network.Match(name) {
		return nil
	}
	return []string{"--network"}
}

// GraceMargin is how much longer than its longest evaluation the grace period of a pod is.
const GraceMargin = 30 * time.Second

// outlive makes a pod's grace period longer than an evaluation of a function that has its own limit: pods are deleted
// while they are in use.
func outlive(spec *corev1.PodSpec, evaluation time.Duration) {
	seconds := int64((evaluation + GraceMargin) / time.Second)
	if own := spec.TerminationGracePeriodSeconds; evaluation > 0 && own != nil && *own < seconds {
		spec.TerminationGracePeriodSeconds = &seconds
	}
}

// shutdownTimeout is the argument that bounds how long the wrapper server may finish what it
// runs: what the grace period leaves, with time before for callers to notice and after for it
// to end by itself.
func shutdownTimeout(spec *corev1.PodSpec) []string {
	if spec.TerminationGracePeriodSeconds == nil || *spec.TerminationGracePeriodSeconds < 2 {
		return nil
	}
	grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
	return []string{"--serve-shutdown-timeout=" + max(grace-10*time.Second, grace/2).String()}
}

// pinned returns the image to run, by its digest.
func pinned(f Function) string {
	if f.Digest == "" {
		return f.Reference
	}
	return f.Reference + "@" + f.Digest
}

// Service returns the Service of the pod that r asks for. It belongs to the caller.
func (b Builder) Service(r Request) *corev1.Service {
	service := r.Template.service.DeepCopy()
	id := podname.PodID(r.Function.Reference, r.Function.Digest, r.Slot)
	service.ObjectMeta = b.metadata(service.ObjectMeta, id, r)
	service.Status = corev1.ServiceStatus{}
	if service.Spec.Type == "" {
		service.Spec.Type = corev1.ServiceTypeClusterIP
	}
	if service.Spec.Selector == nil {
		service.Spec.Selector = make(map[string]string)
	}
	service.Spec.Selector[LabelID] = id
	return service
}

// ServiceOf returns the Service of a pod that exists.
func (b Builder) ServiceOf(pod *corev1.Pod, t Template) *corev1.Service {
	o, _ := Identify(pod)
	f := Function{Reference: o.Function.Reference, Digest: o.Function.Digest}
	return b.Service(Request{Workload: Workload{Function: f}, Template: t, Slot: o.Slot})
}

// metadata returns what a pod and its Service have in common. Of a template's
// metadata, labels and annotations are kept.
func (b Builder) metadata(template metav1.ObjectMeta, name string, r Request) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: name, Namespace: b.Namespace,
		Labels:      map[string]string{},
		Annotations: map[string]string{},
	}
	maps.Copy(meta.Labels, template.Labels)
	maps.Copy(meta.Annotations, template.Annotations)
	meta.Labels[LabelID] = podname.PodID(r.Function.Reference, r.Function.Digest, r.Slot)
	meta.Annotations[AnnotationReference] = r.Function.Reference
	meta.Annotations[AnnotationDigest] = r.Function.Digest
	meta.Annotations[AnnotationSlot] = strconv.Itoa(r.Slot)
	return meta
}
