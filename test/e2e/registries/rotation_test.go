// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// The texts of the refusing servers.
const (
	wrongPassword = "UNAUTHORIZED"
	wrongCA       = "certificate signed by unknown authority"
	kubeletPull   = "401 Unauthorized"
)

// catalog is a function that all registries have, without the registry.
const catalog = "/krm-functions-catalog/set-namespace:v0.4.5"

// TestPrivateRegistries follows the life of a system: it starts with wrong credentials and a wrong
// authority, gets the right ones, and then both are rotated.
func TestPrivateRegistries(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			newLife(t, m).run(t)
		})
	}
}

// life is a system with what changes around it.
type life struct {
	*system
	mode mode
	// private is the registry without TLS, and front the same one with TLS. The secure one is
	// another registry; the node does not trust the authority of its alias.
	private, secure, alias string
	front                  *front
	user                   *user
	repository             string
	open                   string // a function without credentials
}

func newLife(t *testing.T, m mode) *life {
	t.Helper()
	private, secure := s.Registry(t, "private"), s.Registry(t, "secure")
	l := &life{
		mode: m, private: private.Host, secure: secure.Host, alias: secure.Alias, front: newFront(t, private),
		user: newUser(t),
	}
	l.open = s.Registry(t, "open").Host + catalog
	l.repository = newCopies(t, l.open, "first", "second", "third", "fourth")
	wrapper := l.private + "/" + newCopies(t, s.Program(t, suite.Current, "wrapper-server"), "latest") + ":latest"
	_, stranger := issue(t, l.front.host)
	l.system = deploy(t, m, wrapper, l.hosts(), credentials((&user{l.user.name, "wrong"}).dockerConfig(t, l.hosts()...)),
		authorities(stranger))
	return l
}

func (l *life) hosts() []string { return []string{l.private, l.secure, l.alias, l.front.host} }

// authorities returns the authorities of all registries, in one file.
func (l *life) authorities(t *testing.T) []byte {
	t.Helper()
	bed, err := os.ReadFile(s.Registry(t, "secure").CAFile)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(bed, l.front.authority)
}

// image returns a function, by its registry and tag.
func (l *life) image(host, tag string) string { return host + "/" + l.repository + ":" + tag }

func (l *life) run(t *testing.T) {
	conn, ctx := l.connect(t, "function-runner", "9445"), suite.Context(t)
	l.eventually(t, func() error { return answers(suite.SetNamespace(ctx, conn, l.image(l.private, "none"))) })
	before := l.started(t)
	evaluates := func(image string) {
		t.Helper()
		l.eventually(t, func() error { return suite.SetNamespace(ctx, conn, image) })
	}

	// Wrong ones.
	refused(t, conn, l.image(l.private, "first"), wrongPassword, "wrong")
	refused(t, conn, l.image(l.front.host, "first"), wrongCA)
	refused(t, conn, l.open, kubeletPull, "wrong") // the wrapper server is private too

	// The right ones.
	l.put(t, credentials(l.user.dockerConfig(t, l.hosts()...)))
	l.put(t, authorities(l.authorities(t)))
	evaluates(l.open)
	evaluates(l.image(l.private, "first"))
	evaluates(l.image(l.front.host, "first"))
	evaluates(l.secure + catalog)
	l.checkPullSecret(t)

	// The resolver trusts the authority, and the node does not.
	refused(t, conn, l.alias+catalog, wrongCA)

	l.rotatePassword(t, conn, evaluates)
	l.rotateAuthority(t, conn, evaluates)
	if after := l.started(t); !maps.Equal(before, after) {
		t.Errorf("something was restarted: %v, before %v", after, before)
	}
	l.checkRights(t)
}

// checkRights checks that each right on Secrets was used, and that no other was requested.
func (l *life) checkRights(t *testing.T) {
	t.Helper()
	used := map[string]bool{}
	for _, r := range s.Requests(t, l.services, l.mode.account, time.Time{}) {
		if r.Object.Resource == "secrets" {
			used[r.Verb] = true
		}
		if r.Response.Code == http.StatusForbidden {
			t.Errorf("%s %s is forbidden", r.Verb, r.URI)
		}
	}
	if got, want := slices.Sorted(maps.Keys(used)), []string{"create", "get", "update"}; !slices.Equal(got, want) {
		t.Errorf("Secrets were asked for by %v, want %v", got, want)
	}
}

// rotatePassword changes the user's password, and then the system's. Running pods continue.
func (l *life) rotatePassword(t *testing.T, conn *grpc.ClientConn, evaluates func(image string)) {
	t.Helper()
	l.resolve(t, l.image(l.private, "second"))
	old := l.user.password
	l.user.rotate(t)
	if l.mode.name == "microservices" { // its resolver knows the image: the kubelet is refused
		refused(t, conn, l.image(l.private, "second"), kubeletPull, old)
	}
	refused(t, conn, l.image(l.private, "third"), wrongPassword, old)
	if err := suite.SetNamespace(suite.Context(t), conn, l.image(l.private, "first")); err != nil {
		t.Errorf("a running function needs its registry: %v", err)
	}
	l.put(t, credentials(l.user.dockerConfig(t, l.hosts()...)))
	evaluates(l.image(l.private, "second"))
	evaluates(l.image(l.private, "third"))
}

// rotateAuthority gives the registry another authority, then the node, and then the system.
func (l *life) rotateAuthority(t *testing.T, conn *grpc.ClientConn, evaluates func(image string)) {
	t.Helper()
	l.front.rotate(t)
	l.front.configureNode(t)
	refused(t, conn, l.image(l.front.host, "fourth"), wrongCA)
	l.put(t, authorities(l.authorities(t)))
	evaluates(l.image(l.front.host, "fourth"))
}

// resolve makes the image-resolver resolve an image, if it can be called.
func (l *life) resolve(t *testing.T, image string) {
	t.Helper()
	if l.mode.name != "microservices" {
		return
	}
	client := imageresolverv1.NewImageResolverServiceClient(l.connect(t, "image-resolver", "9449"))
	if _, err := client.ResolveImage(suite.Context(t), &imageresolverv1.ResolveImageRequest{Image: image}); err != nil {
		t.Fatal(err)
	}
}

// checkPullSecret checks the copy of the credentials, and that pods use it.
func (l *life) checkPullSecret(t *testing.T) {
	t.Helper()
	secret, err := s.Client.CoreV1().Secrets(l.functions).Get(suite.Context(t), authSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Auths map[string]any }
	if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values(l.hosts()))
	if got := slices.Sorted(maps.Keys(config.Auths)); secret.Type != corev1.SecretTypeDockerConfigJson ||
		!slices.Equal(got, want) {
		t.Errorf("the pull secret is of type %s for %v, want one for %v", secret.Type, got, want)
	}
	for _, pod := range l.pods(t, l.functions) {
		if want := []corev1.LocalObjectReference{{Name: authSecret}}; !slices.Equal(pod.Spec.ImagePullSecrets, want) {
			t.Errorf("pod %s has the pull secrets %v, want %v", pod.Name, pod.Spec.ImagePullSecrets, want)
		}
	}
}
