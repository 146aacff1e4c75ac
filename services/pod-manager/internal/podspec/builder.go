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
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Builder builds function pods and their Services from templates. It is safe for concurrent use.
type Builder struct {
	// Namespace is the namespace of the pods.
	Namespace string
	// MaxMessageBytes is the maximum size of the wrapper server's requests and responses, in bytes.
	MaxMessageBytes int
	// PullSecret is the name of the Secret with the credentials for pulling images. Pods refer to this Secret if their
	// function's registry requires credentials. If PullSecret is empty, no pod refers to a Secret.
	PullSecret string
	// AlwaysPullSecret is true if all pods refer to the pull secret, because images of the template, such as the wrapper
	// server's image, may be in private registries too. A kubelet sends credentials only to the registry to which they
	// belong.
	AlwaysPullSecret bool
	// Args contains additional arguments of the wrapper server, in the form --flag=value. If the template sets the same
	// flag, the template takes precedence.
	Args []string
	// Env contains environment variables of the wrapper server. If the template sets the same variable, the template takes
	// precedence. The wrapper server does not pass variables with the prefix OTEL_ to the function.
	Env []corev1.EnvVar
	// Network matches the images whose functions may use the network.
	Network imagename.Patterns
}

// Pod builds the pod for a request. The caller owns the pod.
func (b Builder) Pod(r Request) *corev1.Pod {
	pod := r.Template.podWith(r.Overrides)
	pod.ObjectMeta = b.commonMetadata(pod.ObjectMeta, r.Name, r)
	pod.Annotations[AnnotationTemplateVersion] = r.Template.version
	pod.Annotations[AnnotationSettingsVersion] = b.SettingsVersion(r)
	pod.Annotations[AnnotationReclaimAfter] = strconv.FormatInt(r.ReclaimAfter.Unix(), 10)
	if _, set := pod.Annotations[AnnotationSafeToEvict]; !set {
		pod.Annotations[AnnotationSafeToEvict] = "true"
	}
	pod.Status = corev1.PodStatus{}

	b.completeFunction(pod, r)
	selectArchitecture(&pod.Spec, r.Function.Architecture)
	spreadPods(pod, podname.PoolID(r.Function.Reference, r.Function.Digest))
	secret := corev1.LocalObjectReference{Name: b.PullSecret}
	wanted := b.PullSecret != "" && (b.AlwaysPullSecret || r.Function.PullSecret)
	if wanted && !slices.Contains(pod.Spec.ImagePullSecrets, secret) { // the template may refer to it already
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, secret)
	}
	return pod
}

// selectArchitecture restricts a pod to nodes with the CPU architecture of its image. The digest or the command belongs
// to this architecture, and would fail on other nodes. If the template selects an architecture, it takes precedence.
func selectArchitecture(spec *corev1.PodSpec, architecture string) {
	if _, set := spec.NodeSelector[corev1.LabelArchStable]; set || architecture == "" {
		return
	}
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	spec.NodeSelector[corev1.LabelArchStable] = architecture
}

// spreadPods makes the scheduler prefer nodes with fewer pods of the same function. The loss of a node then affects
// only a few of the function's pods. It is only a preference, because two pods on the same node are better than a
// single pod. Spread constraints and anti-affinity of the template take precedence.
func spreadPods(pod *corev1.Pod, pool string) {
	pod.Labels[LabelPool] = pool
	affinity := pod.Spec.Affinity
	if len(pod.Spec.TopologySpreadConstraints) > 0 || (affinity != nil && affinity.PodAntiAffinity != nil) {
		return
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelPool: pool}},
	}}
}

// SettingsVersion returns a hash of the settings of a pod. Pods with another hash are outdated and replaced. The hash
// covers the template with its defaults, the builder's settings and the function's own settings. The template's version
// is not enough, because a ConfigMap's resourceVersion does not cover defaults. The hash excludes the digest, and
// values that differ between a function's pods. It also excludes the endpoint setting, which does not change pods.
func (b Builder) SettingsVersion(r Request) string {
	shape := []any{
		r.Template.content, b.MaxMessageBytes, b.PullSecret, b.Env, slices.Concat(b.Args, b.networkArgs(r.Function)),
		r.Concurrency, r.MaxEvaluationTime, r.Prefork, r.Resources,
	}
	if r.Overrides != nil { // without overrides, the hash is the same as in earlier releases
		shape = append(shape, r.Overrides)
	}
	if r.TLS != nil {
		shape = append(shape, r.TLS)
	}
	return contentHash(shape...)
}

// completeFunction completes the function container with the image, arguments, variables, user and resources. The
// wrapper server reads its settings from arguments, because the image of a function can set environment variables. The
// argument --environment lists the variables that the wrapper server may use. It omits variables from envFrom and from
// optional references, because the image can set them if the pod does not.
func (b Builder) completeFunction(pod *corev1.Pod, r Request) {
	c := &pod.Spec.Containers[0]
	c.Image = r.Function.Reference + "@" + r.Function.Digest
	fillPullPolicy(&c.ImagePullPolicy, c.Image)
	setMissing(c, b.Env)
	c.Args = append(c.Args, "--port", strconv.Itoa(Port), "--max-request-body-size", strconv.Itoa(b.MaxMessageBytes))
	extendGracePeriod(&pod.Spec, r.MaxEvaluationTime)
	settings := slices.Concat(
		processArgs(r), b.networkArgs(r.Function), b.Args, shutdownTimeout(&pod.Spec), b.addIdentity(pod, r))
	for _, arg := range settings { // the template takes precedence, then the function's settings
		if !setsFlag(c.Args, arg) {
			c.Args = append(c.Args, arg)
		}
	}
	if names := setNames(c.Env); len(names) > 0 {
		c.Args = append(c.Args, "--environment="+strings.Join(names, ","))
	}
	c.Args = append(c.Args, "--")
	for _, arg := range r.Function.Command {
		c.Args = append(c.Args, strings.ReplaceAll(arg, "$", "$$")) // Kubernetes expands $(NAME)
	}
	fillUser(c, pod, r.Function.User)
	if r.Resources != nil {
		c.Resources = overlayResources(c.Resources, *r.Resources)
	}
}

// setMissing adds the variables in env that the container does not set yet.
func setMissing(c *corev1.Container, env []corev1.EnvVar) {
	for _, variable := range env {
		if !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == variable.Name }) {
			c.Env = append(c.Env, *variable.DeepCopy())
		}
	}
}

// setNames returns the names of the variables that are certainly set in the pod. It omits variables with optional
// references, because Kubernetes may leave them unset.
func setNames(env []corev1.EnvVar) (names []string) {
	for _, v := range env {
		if !isOptional(v.ValueFrom) && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// isOptional reports whether Kubernetes omits a variable if the variable's Secret, ConfigMap or file is missing.
func isOptional(source *corev1.EnvVarSource) bool {
	set := func(missing *bool) bool { return missing != nil && *missing }
	return source != nil && ((source.SecretKeyRef != nil && set(source.SecretKeyRef.Optional)) ||
		(source.ConfigMapKeyRef != nil && set(source.ConfigMapKeyRef.Optional)) ||
		(source.FileKeyRef != nil && set(source.FileKeyRef.Optional)))
}

// setsFlag reports whether args contain the flag of the argument more, which has the form --flag=value.
func setsFlag(args []string, more string) bool {
	flag := func(arg string) string {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-") && flag(arg) == flag(more)
	})
}

// processArgs returns the arguments that limit the function's processes and the time of an evaluation.
func processArgs(r Request) []string {
	args := []string{"--concurrency=" + strconv.Itoa(r.Concurrency)}
	if r.MaxEvaluationTime > 0 {
		args = append(args, "--max-evaluation-time="+r.MaxEvaluationTime.String())
	}
	if r.Prefork != nil {
		args = append(args, "--prefork="+strconv.Itoa(*r.Prefork))
	}
	return args
}

// networkArgs returns the argument --network if the function may use the network, otherwise no arguments.
func (b Builder) networkArgs(f Function) []string {
	name, err := imagename.Parse(f.Reference, "")
	if err != nil || !b.Network.Match(name) {
		return nil
	}
	return []string{"--network"}
}

// GraceMargin is the minimum difference between a pod's grace period and the time limit of an evaluation. With this
// margin, a deleted pod can complete its last evaluation.
const GraceMargin = 30 * time.Second

// extendGracePeriod gives a deleted pod time to complete its last evaluation before the kubelet kills the pod.
// evaluation is the function's own time limit, or zero if it has none.
func extendGracePeriod(spec *corev1.PodSpec, evaluation time.Duration) {
	seconds := int64((evaluation + GraceMargin) / time.Second)
	if own := spec.TerminationGracePeriodSeconds; evaluation > 0 && own != nil && *own < seconds {
		spec.TerminationGracePeriodSeconds = &seconds
	}
}

// shutdownTimeout returns the argument that limits the shutdown of the wrapper server. The limit is shorter than the
// grace period. Callers can therefore notice the shutdown, and the server exits before the kubelet kills it.
func shutdownTimeout(spec *corev1.PodSpec) []string {
	if spec.TerminationGracePeriodSeconds == nil || *spec.TerminationGracePeriodSeconds < 2 {
		return nil
	}
	grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
	return []string{"--serve-shutdown-timeout=" + max(grace-10*time.Second, grace/2).String()}
}

// Service builds the Service of the pod for a request. The caller owns the Service.
func (b Builder) Service(r Request) *corev1.Service {
	service := r.Template.service.DeepCopy()
	id := podname.PodID(r.Function.Reference, r.Function.Digest, r.Slot)
	service.ObjectMeta = b.commonMetadata(service.ObjectMeta, id, r)
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

// ServiceOf builds the Service of an existing pod from the template t.
func (b Builder) ServiceOf(pod *corev1.Pod, t Template) *corev1.Service {
	o, _ := Identify(pod)
	f := Function{Reference: o.Function.Reference, Digest: o.Function.Digest}
	return b.Service(Request{Workload: Workload{Function: f}, Template: t, Slot: o.Slot})
}

// commonMetadata returns the metadata of a pod or its Service, including the template's labels and annotations.
func (b Builder) commonMetadata(template metav1.ObjectMeta, name string, r Request) metav1.ObjectMeta {
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

const (
	// AnnotationIdentity is the annotation with the pod's SPIFFE ID. Pods without an identity lack the annotation.
	AnnotationIdentity = "krm-function-runner.github.io/identity"
	// AnnotationSecret is the annotation with the secret that proves the pod's identity. An attacker who reads the secret
	// and also receives the pod's network traffic can impersonate the pod. The secret grants nothing else.
	AnnotationSecret = "krm-function-runner.github.io/identity-secret" //nolint:gosec // a name
)

// TLS configures the identity of a function's pods, and restricts their callers.
type TLS struct {
	// IDs is the prefix of the pods' SPIFFE IDs. A pod's ID is this prefix, followed by the pod's namespace and name.
	IDs string
	// Authorities contains the CA certificates that verify callers, as PEM.
	Authorities string
	// Callers contains patterns of the SPIFFE IDs that may call the pods.
	Callers []string
}

// podID returns the SPIFFE ID of a pod.
func (t *TLS) podID(namespace, pod string) string { return t.IDs + "/" + namespace + "/" + pod }

// secretVariable is the environment variable that contains a pod's secret. The secret is not an argument, because
// functions can read the arguments of the wrapper server.
const secretVariable = "FNR_TLS_SECRET" //nolint:gosec // a name

// addIdentity adds a SPIFFE ID, and the secret that proves it, to a pod. It returns the wrapper server's arguments for
// TLS. Without TLS settings in the request, it does nothing.
func (b Builder) addIdentity(pod *corev1.Pod, r Request) (args []string) {
	if r.TLS == nil {
		return nil
	}
	id := r.TLS.podID(b.Namespace, r.Name)
	pod.Annotations[AnnotationIdentity] = id
	pod.Annotations[AnnotationSecret] = r.Secret
	secret := corev1.EnvVar{Name: secretVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + AnnotationSecret + "']"},
	}}
	c := &pod.Spec.Containers[0]
	c.Env = append(slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == secretVariable }), secret)
	return []string{
		"--tls-id=" + id, "--tls-authorities=" + r.TLS.Authorities, "--tls-callers=" + strings.Join(r.TLS.Callers, ","),
	}
}

// identityOf returns a pod's SPIFFE ID and secret. Both are empty for pods without an identity.
func identityOf(pod *corev1.Pod) pool.Identity {
	return pool.Identity{ID: pod.Annotations[AnnotationIdentity], Secret: pod.Annotations[AnnotationSecret]}
}
