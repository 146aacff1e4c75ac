// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TestFilesystem has templates that say something of the file system.
func TestFilesystem(t *testing.T) {
	tests := map[string]struct {
		reason    string
		container string // fields of the function container
		volumes   string
		readOnly  bool
		tmp       string // the volume at /tmp
	}{
		"silent": {"a function writes to /tmp only", "", "[]", true, "function-tmp"},
		"writable": {
			"a template overrides it",
			"securityContext: {readOnlyRootFilesystem: false}", "[]", false, "",
		},
		"read-only": {
			"/tmp is there if a template says what is the default",
			"securityContext: {readOnlyRootFilesystem: true}", "[]", true, "function-tmp",
		},
		"own /tmp": {
			"a template's own /tmp stays",
			"volumeMounts: [{name: own, mountPath: /tmp}]", "[{name: own}]", true, "own",
		},
		"privileged": {"which may do anything", "securityContext: {privileged: true}", "[]", false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := "{containers: [{name: function, command: [/w], " + tc.container + "}], volumes: " + tc.volumes + "}"
			spec := built(t, text, defaults())
			c := spec.Containers[0]
			root := c.SecurityContext.ReadOnlyRootFilesystem
			if readOnly := root != nil && *root; readOnly != tc.readOnly {
				t.Errorf("read-only is %t, want %t: %s", readOnly, tc.readOnly, tc.reason)
			}
			if got := mountedAt(c, "/tmp").Name; got != tc.tmp {
				t.Errorf("volume %q is at /tmp, want %q: %s", got, tc.tmp, tc.reason)
			}
			for _, v := range spec.Volumes {
				if v.Name == "function-tmp" && (v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.String() != "256Mi") {
					t.Errorf("/tmp has the bound %v", v.EmptyDir.SizeLimit)
				}
			}
		})
	}
}

// built returns the pod of a template with that spec.
func built(t *testing.T, spec string, d podspec.Defaults) corev1.PodSpec {
	t.Helper()
	template, _, err := podspec.Parse("1", map[string]string{"template": pod(spec)}, d)
	if err != nil {
		t.Fatal(err)
	}
	return builder().Pod(request(template)).Spec
}

// mountedAt returns what a container has at a path.
func mountedAt(c corev1.Container, path string) corev1.VolumeMount {
	i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
	if i < 0 {
		return corev1.VolumeMount{}
	}
	return c.VolumeMounts[i]
}

func TestFunctionsCannotReplaceTheirServer(t *testing.T) {
	for name, template := range map[string]podspec.Template{
		"builtin": podspec.Default(defaults()), "porch": parsed(t, "porch"), "foreign-init": parsed(t, "foreign-init"),
	} {
		spec := builder().Pod(request(template)).Spec
		if mount := mountedAt(spec.Containers[0], "/wrapper-server-tools"); mount.Name == "" || !mount.ReadOnly {
			t.Errorf("%s: the function may write to the wrapper server's directory: %+v", name, mount)
		}
		if mount := mountedAt(spec.InitContainers[0], "/wrapper-server-tools"); mount.ReadOnly {
			t.Errorf("%s: the init container cannot write there", name)
		}
	}
	said := "{containers: [{name: function, command: [/w], volumeMounts: [{name: wrapper-server-tools, mountPath: /w, " +
		"readOnly: false}]}], volumes: [{name: wrapper-server-tools}]}"
	if mountedAt(built(t, said, defaults()).Containers[0], "/w").ReadOnly {
		t.Error("a template that has it writable is not heard")
	}
}

// TestEphemeralStorage has templates with resources.
func TestEphemeralStorage(t *testing.T) {
	tests := map[string]struct{ resources, request, limit, reason string }{
		"none":       {"{}", "64Mi", "1Gi", "as everything else"},
		"others":     {"{limits: {memory: 2Gi}}", "64Mi", "1Gi", "what templates say seldom has it"},
		"a limit":    {"{limits: {ephemeral-storage: 5Gi}}", "0", "5Gi", "Kubernetes makes it the request too"},
		"a request":  {"{requests: {ephemeral-storage: 2Gi}}", "2Gi", "0", "the default limit may be too small for it"},
		"everything": {"{requests: {ephemeral-storage: 1Mi}, limits: {ephemeral-storage: 2Mi}}", "1Mi", "2Mi", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := built(t, "{containers: [{name: function, command: [/w], resources: "+tc.resources+"}]}", defaults())
			c := spec.Containers[0]
			request, limit := c.Resources.Requests.StorageEphemeral(), c.Resources.Limits.StorageEphemeral()
			if request.Cmp(resource.MustParse(tc.request)) != 0 || limit.Cmp(resource.MustParse(tc.limit)) != 0 {
				t.Errorf("request %s and limit %s, want %s and %s: %s", request, limit, tc.request, tc.limit, tc.reason)
			}
		})
	}
}
