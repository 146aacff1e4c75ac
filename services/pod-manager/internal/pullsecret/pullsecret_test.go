// SPDX-License-Identifier: Apache-2.0

package pullsecret_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pullsecret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	namespace = "porch-fn-system"
	name      = "auth-secret"
)

// world is a keeper that runs, with its file and its cluster.
type world struct {
	*pullsecret.Keeper
	path   string
	client *fake.Clientset
	// writes gets each Secret that was created or updated.
	writes chan *corev1.Secret
	log    *bytes.Buffer // to be read after the keeper has ended
	meters *sdkmetric.ManualReader
	stop   func()
}

// start runs a keeper of a file, none if content is empty. Refuse, if not nil, has
// requests fail.
func start(t *testing.T, content string, interval time.Duration, refuse func(verb string) error,
	existing ...runtime.Object,
) *world {
	t.Helper()
	w := &world{
		path: filepath.Join(t.TempDir(), ".dockerconfigjson"), client: fake.NewClientset(existing...),
		writes: make(chan *corev1.Secret, 100), log: new(bytes.Buffer), meters: sdkmetric.NewManualReader(),
	}
	if content != "" {
		w.write(t, content)
	}
	w.client.PrependReactor("*", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if refuse != nil {
			if err := refuse(action.GetVerb()); err != nil {
				return true, nil, err
			}
		}
		if write, ok := action.(clienttesting.CreateAction); ok { // or an update
			w.writes <- write.GetObject().(*corev1.Secret)
		}
		return false, nil, nil
	})
	keeper := pullsecret.New(pullsecret.Config{
		Path: w.path, Secrets: w.client.CoreV1().Secrets(namespace), Namespace: namespace, Name: name,
		CheckInterval: interval,
		Log:           slog.New(slog.NewTextHandler(w.log, nil)),
		Meter:         sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.meters)).Meter(""),
	})
	w.Keeper = keeper
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- keeper.Run(ctx) }()
	var stopped bool
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if strings.Contains(w.log.String(), "s3cret") {
			t.Errorf("the log tells what is secret:\n%s", w.log)
		}
	}
	t.Cleanup(w.stop)
	return w
}

// write changes the file as an editor does that is kind to readers.
func (w *world) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(w.path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.path+".new", w.path); err != nil {
		t.Fatal(err)
	}
}

// answer is what Then answers.
func (w *world) answer() error {
	answered := make(chan error, 1)
	w.Then(func(err error) { answered <- err })
	return <-answered
}

// login is a docker configuration with a password.
func login(password string) string {
	return `{"auths":{"r.example":{"username":"u","password":"` + password + `"}}}`
}

// holds checks that a Secret has the password.
func holds(t *testing.T, s *corev1.Secret, password string) {
	t.Helper()
	got := logins(t, s.Data[corev1.DockerConfigJsonKey])
	if len(got) != 1 || got[0] != "r.example u:"+password {
		t.Errorf("the Secret holds %q, want the password %q", got, password)
	}
}

func TestSecretFollowsTheFile(t *testing.T) {
	w := start(t, login("s3cret-1"), time.Hour, nil)
	first := <-w.writes
	holds(t, first, "s3cret-1")
	if first.Name != name || first.Type != corev1.SecretTypeDockerConfigJson ||
		first.Labels["app.kubernetes.io/managed-by"] != "krm-function-runner" {
		t.Errorf("the Secret is %+v of type %s", first.ObjectMeta, first.Type)
	}
	w.write(t, login("s3cret-2"))
	holds(t, <-w.writes, "s3cret-2")
	w.write(t, `{"auths":`) // the writer has not finished
	w.write(t, login("s3cret-3"))
	holds(t, <-w.writes, "s3cret-3")
	for _, a := range w.client.Actions() {
		switch a.GetVerb() {
		case "get", "create", "update":
		default:
			t.Errorf("%s Secrets is not in Porch's Role", a.GetVerb())
		}
	}
}

// TestBrokenFileIsOutOfStep replaces a good file by one that is not valid: the Secret stays, and the metric that the
// alert is about shows it until the file is good again.
func TestBrokenFileIsOutOfStep(t *testing.T) {
	w := start(t, login("s3cret-1"), time.Millisecond, nil)
	<-w.writes
	w.awaitInStep(t, 1)
	w.write(t, `{"auths":`)
	w.awaitInStep(t, 0)
	w.write(t, login("s3cret-2"))
	holds(t, <-w.writes, "s3cret-2")
	w.awaitInStep(t, 1)
}

// awaitInStep waits until the metric has a value.
func (w *world) awaitInStep(t *testing.T, want int64) {
	t.Helper()
	await.Equal(t, "fn.pull_secret.in_step", func() int64 { return w.inStep(t) }, want)
}

// inStep returns the metric, or -1 if it was not recorded.
func (w *world) inStep(t *testing.T) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.meters.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if gauge, is := m.Data.(metricdata.Gauge[int64]); is && m.Name == "fn.pull_secret.in_step" {
				return gauge.DataPoints[0].Value
			}
		}
	}
	return -1
}

func TestSecretIsRestored(t *testing.T) {
	w := start(t, login("s3cret"), time.Millisecond, nil)
	<-w.writes
	if err := w.client.CoreV1().Secrets(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, <-w.writes, "s3cret")
}

func TestSecretThatIsThere(t *testing.T) {
	there := func(kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Type: kind,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(login("s3cret-0"))},
		}
	}
	t.Run("Porch's is taken over", func(t *testing.T) {
		w := start(t, login("s3cret-1"), time.Hour, nil, there(corev1.SecretTypeDockerConfigJson))
		holds(t, <-w.writes, "s3cret-1")
		if err := w.answer(); err != nil {
			t.Error(err)
		}
		w.stop()
		if !strings.Contains(w.log.String(), "replacing the pull secret") {
			t.Errorf("it is not logged:\n%s", w.log)
		}
	})
	t.Run("another type stays", func(t *testing.T) {
		w := start(t, login("s3cret-1"), time.Hour, nil, there(corev1.SecretTypeOpaque))
		if err := w.answer(); err == nil || !strings.Contains(err.Error(), "porch-fn-system/auth-secret") ||
			!strings.Contains(err.Error(), `"Opaque"`) {
			t.Errorf("got %v, want what is in the way", err)
		}
		if len(w.writes) > 0 {
			t.Error("it was written")
		}
	})
}

// TestReplicasDoNotFight has two replicas whose files differ for a while.
func TestReplicasDoNotFight(t *testing.T) {
	w := start(t, login("s3cret-1"), time.Millisecond, nil)
	<-w.writes
	ahead := filepath.Join(t.TempDir(), ".dockerconfigjson")
	if err := os.WriteFile(ahead, []byte(login("s3cret-2")), 0o600); err != nil {
		t.Fatal(err)
	}
	other := pullsecret.New(pullsecret.Config{
		Path: ahead, Secrets: w.client.CoreV1().Secrets(namespace), Namespace: namespace, Name: name,
		CheckInterval: time.Millisecond,
		Log:           slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter(""),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- other.Run(ctx) }()
	holds(t, <-w.writes, "s3cret-2")
	w.write(t, login("s3cret-2"))
	w.write(t, login("s3cret-3"))
	holds(t, <-w.writes, "s3cret-3") // and nothing in between
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOthersAreFaster has others write the Secret between this replica's reads and writes. Nobody waits for that.
func TestOthersAreFaster(t *testing.T) {
	resource := corev1.Resource("secrets")
	refusals := []error{
		apierrors.NewAlreadyExists(resource, name), apierrors.NewConflict(resource, name, errors.New("written")),
		apierrors.NewNotFound(resource, name),
	}
	w := start(t, login("s3cret"), time.Hour, func(verb string) error {
		if verb == "get" || len(refusals) == 0 {
			return nil
		}
		err := refusals[0]
		refusals = refusals[1:]
		return err
	})
	if err := w.answer(); err != nil {
		t.Error(err)
	}
	holds(t, <-w.writes, "s3cret")
}
