// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// basePodTemplate is a PodTemplate as the Kubernetes API has it: with the values that it fills in.
const basePodTemplate = `
template:
  metadata:
    labels: {team: a}
    annotations: {note: b}
  spec:
    restartPolicy: Always
    terminationGracePeriodSeconds: 30
    dnsPolicy: ClusterFirst
    securityContext: {}
    initContainers:
    - name: copy-wrapper-server
      image: example.com/theirs:latest
      imagePullPolicy: Always
      command: [cp, -a, /wrapper-server/., /wrapper-server-tools]
      terminationMessagePolicy: File
      volumeMounts: [{name: wrapper-server-tools, mountPath: /wrapper-server-tools}]
    containers:
    - name: function
      image: to-be-replaced
      imagePullPolicy: Always
      command: [/wrapper-server-tools/wrapper-server]
      terminationMessagePolicy: File
      env: [{name: OTEL_METRICS_EXPORTER, value: prometheus}]
      ports: [{name: metrics, containerPort: 9464}]
      volumeMounts: [{name: wrapper-server-tools, mountPath: /wrapper-server-tools}]
    volumes: [{name: wrapper-server-tools, emptyDir: {}}]
`

const baseServiceTemplate = `
template:
  metadata: {labels: {team: a}, annotations: {note: c}}
  spec:
    ports:
    - {name: grpc, port: 9446, targetPort: 9446}
    - {name: metrics, port: 9464, targetPort: 9464}
`

// object returns an object in YAML as the dynamic client does; nil for nothing.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestParseBase(t *testing.T) {
	d := podspec.Defaults{WrapperImage: "example.com/ours:v1", TerminationGracePeriod: 5 * time.Minute}
	template, warnings, err := podspec.ParseBase(object(t, basePodTemplate), object(t, baseServiceTemplate), d)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	pod := podOf(t, template, nil)
	init, function := pod.Spec.InitContainers[0], pod.Spec.Containers[0]
	if init.Image != "example.com/ours:v1" || init.ImagePullPolicy != "IfNotPresent" {
		t.Errorf("the init container is %s, pulled %s", init.Image, init.ImagePullPolicy)
	}
	if function.ImagePullPolicy != "IfNotPresent" || function.TerminationMessagePolicy != "FallbackToLogsOnError" ||
		!function.VolumeMounts[0].ReadOnly {
		t.Errorf("the function's container is %+v", function)
	}
	if pod.Spec.RestartPolicy != "Never" || *pod.Spec.TerminationGracePeriodSeconds != 300 ||
		pod.Labels["team"] != "a" || pod.Annotations["note"] != "b" {
		t.Errorf("the pod is %+v", pod)
	}
	service := podspec.Builder{}.Service(podspec.Request{Template: template})
	if len(service.Spec.Ports) != 2 || service.Spec.Ports[1].Port != 9464 || service.Labels["team"] != "a" ||
		service.Annotations["note"] != "c" || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("the Service is %+v", service)
	}
}

func TestVersionsOfBaseTemplates(t *testing.T) {
	d := podspec.Defaults{WrapperImage: "example.com/ours:v1"}
	version := func(pod, service string) string {
		template, _, err := podspec.ParseBase(object(t, pod), object(t, service), d)
		if err != nil {
			t.Fatal(err)
		}
		return template.Version()
	}
	if got, want := version("", ""), podspec.Default(d).Version(); got != want {
		t.Errorf("without objects the version is %s, want the built-in template's %s", got, want)
	}
	both := version(basePodTemplate, baseServiceTemplate)
	if again := version("metadata: {resourceVersion: '5'}"+basePodTemplate, baseServiceTemplate); again != both ||
		!strings.HasPrefix(both, "base-") {
		t.Errorf("versions are %s and %s: only what the templates say counts", both, again)
	}
	others := map[string]bool{
		both: true, version(basePodTemplate, ""): true, version("", baseServiceTemplate): true, version("", ""): true,
	}
	if len(others) != 4 {
		t.Errorf("versions are %v: each part counts", others)
	}
}

func TestParseBaseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{template: a}":                                  "template: the object has no field template",
		"{template: {spec: {containers: none}}}":         "template: ",
		"{template: {spec: {containers: [{name: fn}]}}}": `no container is named "function"`,
	} {
		if _, _, err := podspec.ParseBase(object(t, text), nil, podspec.Defaults{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("ParseBase(%s) = %v, want %q", text, err, want)
		}
	}
	const service = "{template: {spec: {ports: [{port: 80}]}}}"
	if _, _, err := podspec.ParseBase(nil, object(t, service), podspec.Defaults{}); err == nil ||
		!strings.Contains(err.Error(), "must have port 9446") {
		t.Errorf("a Service without the port: %v", err)
	}
}
