// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package bed_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// resolverFiles are the files of a secret that an image-resolver gets.
type resolverFiles map[string][]byte

// resolver runs the image-resolver's own image as a pod and returns a client of it. It may use
// plain HTTP for the registries without TLS.
func resolver(t *testing.T, files resolverFiles) imageresolverv1connect.ImageResolverServiceClient {
	t.Helper()
	ctx, namespace := suite.Context(t), s.Namespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registries"}, Data: files}
	if _, err := s.Client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := suite.Pod("image-resolver", s.Registry(t, "open").Host+"/programs/image-resolver:latest")
	container := &pod.Spec.Containers[0]
	for name, value := range map[string]string{
		"FNR_INSECURE_REGISTRIES": s.Registry(t, "open").Host + "," + s.Registry(t, "private").Host,
		"FNR_AUTH_SECRET_PATH":    "/registries/.dockerconfigjson",
		"FNR_TLS_SECRET_PATH":     "/registries",
	} {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "registries", MountPath: "/registries", ReadOnly: true}}
	pod.Spec.Volumes = []corev1.Volume{{
		Name:         "registries",
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "registries"}},
	}}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9449}},
		PeriodSeconds: 1,
	}
	pod.Spec.AutomountServiceAccountToken = new(false) // it needs no rights in Kubernetes
	s.Create(ctx, t, namespace, pod)
	ready := s.Await(ctx, t, namespace, pod.Name, suite.Ready)

	client := servetest.HTTP2Client(t)
	client.Timeout = 30 * time.Second
	return imageresolverv1connect.NewImageResolverServiceClient(client,
		"http://"+ready.Status.PodIP+":9449", connect.WithGRPC())
}

// authority returns the PEM of the secure registry's authority.
func authority(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(s.Registry(t, "secure").CAFile)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestResolverKnowsEachRegistry(t *testing.T) {
	private, secure := s.Registry(t, "private"), s.Registry(t, "secure")
	client := resolver(t, resolverFiles{
		"ca.crt":            authority(t),
		".dockerconfigjson": dockerConfig(t, private.Host, private.Username, private.Password, secure.Host),
	})
	for _, r := range []bed.Registry{s.Registry(t, "open"), private, secure} {
		t.Run(r.Name, func(t *testing.T) {
			resp, err := client.ResolveImage(t.Context(),
				&imageresolverv1.ResolveImageRequest{Image: r.Host + "/test/entrypoint:v1"})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(resp.GetDigest(), "sha256:") || len(resp.GetEntrypoint()) == 0 || len(resp.GetCmd()) == 0 ||
				!slices.Equal(resp.GetCommand(), slices.Concat(resp.GetEntrypoint(), resp.GetCmd())) {
				t.Errorf("got %v, want a digest, and Entrypoint then Cmd as the command", resp)
			}
			if want := r.Username != ""; resp.GetPullCredentials() != want {
				t.Errorf("a pod needs credentials: %v, want %v", resp.GetPullCredentials(), want)
			}
		})
	}
}

func TestResolverSaysWhatIsWrong(t *testing.T) {
	private, secure := s.Registry(t, "private"), s.Registry(t, "secure")
	client := resolver(t, resolverFiles{
		"ca.crt":            authority(t),
		".dockerconfigjson": dockerConfig(t, private.Host, private.Username, "wrong password"),
	})
	for _, test := range []struct{ reason, image, want string }{
		{"a wrong password", private.Host + "/test/entrypoint:v1", "check the credentials"},
		{"no credentials", secure.Host + "/test/entrypoint:v1", "no credentials are configured"},
		{"no such tag", s.Registry(t, "open").Host + "/test/entrypoint:v9", "MANIFEST_UNKNOWN"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := client.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: test.image})
			if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want FailedPrecondition that says %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "wrong password") {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}
