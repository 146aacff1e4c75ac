// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

func digest(t testing.TB, image interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestResolve(t *testing.T) {
	s := open()(t)
	image := s.registry.Push(t, "fn:v1", v1.Config{
		Entrypoint: []string{
			"/fn",
		}, Cmd: []string{"--quiet"}, Env: []string{"A=b"}, WorkingDir: "/w", User: "65532",
	})
	r, _ := start(t, s.config)
	for _, ref := range []string{":v1", "@" + digest(t, image), ":v1@" + digest(t, image)} {
		got, err := resolve(t, r, s.registry.Host+"/fn"+ref)
		if err != nil {
			t.Fatal(err)
		}
		if got.GetDigest() != digest(t, image) || !slices.Equal(got.GetCommand(), []string{"/fn", "--quiet"}) ||
			!slices.Equal(got.GetEnv(), []string{"A=b"}) || got.GetWorkingDir() != "/w" || got.GetUser() != "65532" ||
			got.GetPullCredentials() {
			t.Errorf("%s is %v", ref, got)
		}
	}
	if got := s.registry.Count("GET /v2/fn/blobs/"); got != 1 {
		t.Errorf("%d configurations read, want one: a tag's image is known by its digest too", got)
	}
}

func TestResolveIndex(t *testing.T) {
	s := open()(t)
	member := func(arch string) mutate.IndexAddendum {
		return mutate.IndexAddendum{
			Add:        testregistry.Image(t, function),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		}
	}
	amd, arm := member("amd64"), member("arm64")
	index := mutate.AppendManifests(empty.Index, amd, arm)
	s.registry.PushIndex(t, "fn:v1", index)
	for platform, want := range map[string]mutate.Appendable{"linux/amd64": amd.Add, "linux/arm64": arm.Add} {
		s.config.Platform = platform
		r, _ := start(t, s.config)
		got, err := resolve(t, r, s.registry.Host+"/fn:v1")
		if err != nil {
			t.Fatal(err)
		}
		if got.GetDigest() != digest(t, want) || got.GetIndexDigest() != digest(t, index) {
			t.Errorf("for %q: %v, want the digests of the platform's image and of the index", platform, got)
		}
	}
}

func TestTags(t *testing.T) {
	s := open()(t)
	for _, tag := range []string{"v0.4.1", "v0.4.5", "v0.10.0", "latest", "v0.4.6-git-abc"} {
		s.registry.Push(t, "fn:"+tag, function)
	}
	r, _ := start(t, s.config)
	got, err := r.ResolveImage(t.Context(),
		&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:latest", TagConstraint: "~0.4"})
	if err != nil || !strings.HasSuffix(got.GetReference(), "/fn:v0.4.5") {
		t.Errorf("constraint: %v, %v, want v0.4.5", got, err)
	}
	tags, err := r.ListTags(t.Context(), &imageresolverv1.ListTagsRequest{Repository: s.registry.Host + "/fn"})
	if want := []string{"v0.10.0", "v0.4.6-git-abc", "v0.4.5", "v0.4.1", "latest"}; err != nil ||
		!slices.Equal(tags.GetTags(), want) {
		t.Errorf("tags %v, %v, want %v", tags.GetTags(), err, want)
	}
	if got := s.registry.Count("GET /v2/fn/tags/list"); got != 1 {
		t.Errorf("%d lists read, want one", got)
	}
	_, err = r.ResolveImage(t.Context(),
		&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn", TagConstraint: ">=2"})
	if fault.Of(err) != fault.Invalid {
		t.Errorf("no match: %v, want Invalid", err)
	}
	expectText(t, err, ">=2", "v0.10.0")
}

func TestTagMoves(t *testing.T) {
	s := open()(t)
	old := s.registry.Push(t, "fn:v1", function)
	r, said := start(t, s.config)
	ask := func(refresh bool, want string) {
		t.Helper()
		got, err := r.ResolveImage(t.Context(),
			&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:v1", Refresh: refresh})
		if err != nil || got.GetDigest() != want {
			t.Errorf("refresh %v: %v, %v, want %s", refresh, got.GetDigest(), err, want)
		}
	}
	ask(false, digest(t, old))
	ask(true, digest(t, old))
	if got := s.registry.Count("GET /v2/fn/manifests/"); got != 1 {
		t.Errorf("%d manifests read, want one: HEAD is enough for a tag that stays", got)
	}
	moved := s.registry.Push(t, "fn:v1", function)
	ask(false, digest(t, old))
	ask(true, digest(t, moved))
	ask(false, digest(t, moved))
	if !strings.Contains(said.all(), "tag has moved") {
		t.Error("the log does not say that the tag has moved")
	}
}

func TestOneFetchForTenThousand(t *testing.T) {
	t.Parallel()
	s := open()(t)
	s.registry.Push(t, "fn:v1", function)
	r := startWith(t, s.config, telemetry.Discard())
	for round := range 2 {
		var asking sync.WaitGroup
		for range 10_000 {
			asking.Go(func() {
				if _, err := resolve(t, r, s.registry.Host+"/fn:v1"); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		for _, request := range []string{"GET /v2/fn/manifests/", "GET /v2/fn/blobs/"} {
			if got := s.registry.Count(request); got != 1 {
				t.Errorf("round %d: %d times %s, want once", round, got, request)
			}
		}
	}
}

func TestPullCredentials(t *testing.T) {
	s := private("right")(t)
	s.registry.Push(t, "fn:v1", function)
	r, _ := start(t, s.config)
	got, err := resolve(t, r, s.registry.Host+"/fn:v1")
	if err != nil || !got.GetPullCredentials() {
		t.Errorf("%v, %v, want that a pod needs credentials", got, err)
	}
}

// TestPullCredentialsFollowTheRegistry has a registry with cached images become private, and the resolver get a login.
func TestPullCredentialsFollowTheRegistry(t *testing.T) {
	users := func() map[string]string { return map[string]string{"user": "right"} }
	var closed atomic.Bool
	s := open(testregistry.On("/v2/", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if closed.Load() {
			next = testregistry.BasicAuth(users)(next)
		}
		next.ServeHTTP(w, req)
	}))(t)
	image := s.registry.Push(t, "fn:v1", function)
	s.registry.Tag(t, "fn:v2", image)
	other := s.registry.Push(t, "fn:v3", function)
	s.config.AuthSecretPath = t.TempDir() + "/config.json"
	r, _ := start(t, s.config)
	expect := func(ref string, refresh, want bool) {
		t.Helper()
		got, err := r.ResolveImage(t.Context(),
			&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn" + ref, Refresh: refresh})
		if err != nil || got.GetPullCredentials() != want {
			t.Errorf("%s: %v, %v, want pull credentials: %v", ref, got, err, want)
		}
	}
	for _, ref := range []string{":v1", "@" + digest(t, image), "@" + digest(t, other)} {
		expect(ref, false, false)
	}
	closed.Store(true)
	dockerConfig(t, s.config.AuthSecretPath, s.registry.Host, "user", "right")
	expect(":v1", true, true)
	expect("@"+digest(t, image), false, true) // the answer about the tag is about this image
	expect(":v2", false, true)                // another tag of a known image
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for { // until the change of the file is noticed
		got, err := resolve(t, r, s.registry.Host+"/fn@"+digest(t, other))
		if err != nil {
			t.Fatal(err)
		}
		if got.GetPullCredentials() {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatal("a digest's answer never changes, want that a pod needs credentials")
		}
	}
	closed.Store(false)
	expect(":v1", true, true) // a mirror without credentials would look the same
	if got := s.registry.Count("GET /v2/fn/blobs/"); got != 2 {
		t.Errorf("%d configurations read, want one of each image: HEAD is enough for a known image", got)
	}
}

func TestServedOverRPC(t *testing.T) {
	s := open()(t)
	s.registry.Push(t, "fn:v1", function)
	s.config.InsecureRegistries = append(s.config.InsecureRegistries, "127.0.0.1:1")
	part, err := imageresolver.New(s.config, servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(part.Endpoints[0].Handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	run(t, part.Tasks)

	client := imageresolverv1connect.NewImageResolverServiceClient(server.Client(), server.URL)
	if got, err := client.ResolveImage(t.Context(),
		&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:v1"}); err != nil ||
		len(got.GetCommand()) != 2 {
		t.Errorf("Connect: %v, %v", got, err)
	}
	conn := servetest.Dial(t, strings.TrimPrefix(server.URL, "http://"))
	for image, want := range map[string]codes.Code{
		s.registry.Host + "/fn:v1": codes.OK,
		s.registry.Host + "/fn:v2": codes.FailedPrecondition,
		"127.0.0.1:1/fn":           codes.Unavailable,
		"NOT VALID":                codes.InvalidArgument,
	} {
		_, err := imageresolverv1.NewImageResolverServiceClient(
			conn,
		).ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: image})
		if got := status.Code(err); got != want {
			t.Errorf("%s: %v (%v), want %v", image, got, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := client.ResolveImage(ctx,
		&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:v3"}); connect.CodeOf(
		err,
	) != connect.CodeDeadlineExceeded {
		t.Errorf("deadline: %v", err)
	}
}
