// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package release_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

var (
	releases = flag.String("releases", "", "directory with the releases")
	key      = flag.String("key", "", "public key that they are signed with")
)

// The releases, and what is installed of them. The node has no processors for production.
const (
	first, second = "v0.0.1", "v0.0.2"
	overlay       = "porch-microservices"
)

const (
	system, functions = "porch-system", "porch-fn-system"
	// setNamespace is a function that the gateway has as a local binary.
	setNamespace = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"
	callers      = 8
	pause        = 300 * time.Millisecond
	// beyond is how long callers go on after the last step.
	beyond = 5 * time.Second
)

var s *suite.Suite

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// TestReleaseIsInstalledUpgradedAndRolledBack follows docs/install.md line by line, with nothing but the files of
// two releases. While callers evaluate, the second one takes the place of the first, and the first that of the
// second.
func TestReleaseIsInstalledUpgradedAndRolledBack(t *testing.T) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // the test's own has ended
		defer cancel()
		for _, namespace := range []string{system, functions} {
			s.RemoveNamespace(ctx, t, namespace)
		}
	})
	before, after := download(t, first), download(t, second)
	commands := readSteps(t, filepath.Join(before.dir, "install.md"))

	out := before.follow(t, commands["1"], commands["2"], commands["3"])
	for _, want := range []string{"Verified OK", "images_" + first + ".tar: OK", "verified gateway:" + first} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not print %q", want)
		}
	}
	// Only on the test bed: its registry of functions has no TLS.
	kubectl(t, "-n", system, "set", "env", "deployment/image-resolver",
		"FNR_INSECURE_REGISTRIES="+s.Registry(t, "open").Host)
	s.AwaitRollout(suite.Context(t), t, system, "image-resolver")
	inPod := s.Registry(t, "open").Host + "/krm-functions-catalog/set-namespace:v0.4.5"
	for _, image := range []string{setNamespace, inPod} {
		if err := suite.SetNamespace(suite.Context(t), caller(t), image, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	runs(t, before)

	conns := make([]*grpc.ClientConn, callers)
	for i := range conns {
		conns[i] = caller(t)
	}
	images := []string{setNamespace, inPod}
	evaluations, err := suite.UnderLoad(t.Context(), callers, pause, func(ctx context.Context, number int) error {
		return suite.SetNamespace(ctx, conns[number], images[number%len(images)])
	}, func() {
		after.follow(t, commands["1"], commands["2"], withoutNamespaces(commands["3"]))
		runs(t, after)
		before.follow(t, commands["4"])
		runs(t, before)
		<-time.After(beyond)
	})
	t.Logf("%d evaluations during an upgrade and a rollback", evaluations)
	if err != nil {
		t.Errorf("a caller failed: %v", err)
	}
}

// withoutNamespaces returns the commands of an upgrade.
func withoutNamespaces(blocks []string) []string {
	return slices.DeleteFunc(slices.Clone(blocks), func(block string) bool {
		return strings.Contains(block, "overlays/namespaces")
	})
}

// runs checks that all pods of the system have the images of a release, by the digests in its manifests.
func runs(t *testing.T, release site) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(release.dir, "deploy/components/images/kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pods, err := s.Client.CoreV1().Pods(system).List(suite.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]bool{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		repository, digest, _ := strings.Cut(pod.Spec.Containers[0].Image, "@")
		programs[pod.Labels["app"]] = true
		named := digest != "" && strings.Contains(string(content), digest)
		if !named || !strings.HasPrefix(repository, release.registry+"/") {
			t.Errorf("%s runs %s@%s, which is not of %s", pod.Name, repository, digest, release.version)
		}
	}
	if len(programs) != 3 {
		t.Errorf("the programs %v run, want those of microservices mode", programs)
	}
}

// caller returns a connection to the function runner, at the address of its Service.
func caller(t *testing.T) *grpc.ClientConn {
	t.Helper()
	service, err := s.Client.CoreV1().Services(system).Get(suite.Context(t), "function-runner", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return suite.Connect(t, service.Spec.ClusterIP+":9445")
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "kubectl", args...).CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
