// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// secured is a request for a pod that proves who it is.
func secured(t podspec.Template) podspec.Request {
	r := request(t)
	r.Secret = secret
	r.TLS = &podspec.TLS{
		IDs: "spiffe://function-runner/function-pod", Authorities: "PEM",
		Callers: []string{"spiffe://function-runner/gateway", "spiffe://other/*"},
	}
	return r
}

func TestPodsWithAnIdentity(t *testing.T) {
	r := secured(podspec.Default(defaults()))
	pod := builder().Pod(r)
	id := "spiffe://function-runner/function-pod/" + pod.Namespace + "/" + r.Name
	got, ok := podspec.Identify(pod)
	if want := (pool.Identity{ID: id, Secret: secret}); !ok || got.Identity != want {
		t.Errorf("the identity is %v, want %v", got.Identity, want)
	}
	for _, want := range []string{
		"--tls-id=" + id, "--tls-authorities=PEM", "--tls-callers=spiffe://function-runner/gateway,spiffe://other/*",
		"--environment=FNR_TLS_SECRET",
	} {
		if args := pod.Spec.Containers[0].Args; !slices.Contains(args, want) {
			t.Errorf("the arguments are %q, want %q", args, want)
		}
	}
	env := variables(pod)
	source := env["FNR_TLS_SECRET"].ValueFrom
	if source == nil || source.FieldRef.FieldPath != "metadata.annotations['"+podspec.AnnotationSecret+"']" {
		t.Errorf("the secret comes from %v", source)
	}
	if service, err := json.Marshal(builder().Service(r)); err != nil || strings.Contains(string(service), secret) {
		t.Errorf("the Service has the secret: %s, %v", service, err)
	}
}

func TestPodsWithoutAnIdentity(t *testing.T) {
	r := request(podspec.Default(defaults()))
	r.Secret = secret
	pod := builder().Pod(r)
	if got, _ := podspec.Identify(pod); got.Identity != (pool.Identity{}) {
		t.Errorf("the identity is %v", got.Identity)
	}
	text, err := json.Marshal(pod)
	if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), "FNR_TLS") ||
		strings.Contains(string(text), "--tls") {
		t.Errorf("the pod has an identity: %s, %v", text, err)
	}
}

// variables are those of the function container, by name.
func variables(pod *corev1.Pod) map[string]corev1.EnvVar {
	env := make(map[string]corev1.EnvVar)
	for _, v := range pod.Spec.Containers[0].Env {
		env[v.Name] = v
	}
	return env
}
