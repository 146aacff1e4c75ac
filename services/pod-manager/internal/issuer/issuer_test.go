// SPDX-License-Identifier: Apache-2.0

package issuer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	namespace = "porch-system"
	authority = "function-runner-authority"
)

// ids are the certificates in tests, by their Secrets.
var ids = map[string]mtls.ID{
	"gateway-tls": id("spiffe://function-runner/gateway"), "pod-manager-tls": id("spiffe://function-runner/pod-manager"),
}

func id(text string) mtls.ID {
	parsed, err := mtls.ParseID(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// world is a Kubernetes API with empty Secrets.
type world struct {
	client *fake.Clientset
	log    *logtest.Log
}

func newWorld(t testing.TB) *world {
	t.Helper()
	var existing []runtime.Object
	for _, name := range []string{authority, "gateway-tls", "pod-manager-tls"} {
		existing = append(existing, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}})
	}
	return &world{client: fake.NewClientset(existing...), log: new(logtest.Log)}
}

// issuer returns an issuer whose certificates are valid for life, and its authorities for eight times as long.
func (w *world) issuer(t testing.TB, life time.Duration, changes ...func(*issuer.Config)) *issuer.Issuer {
	t.Helper()
	config := issuer.Config{
		Secrets: w.client.CoreV1().Secrets(namespace), Authority: authority, Certificates: ids,
		Life: life, AuthorityLife: 8 * life, Spread: life,
		Pause: min(time.Minute, life/20),
		Log:   slog.New(slog.NewTextHandler(w.log, nil)), Meter: noop.Meter{},
	}
	for _, change := range changes {
		change(&config)
	}
	i := issuer.New(config)
	return i
}

// data returns the data of a Secret.
func (w *world) data(t testing.TB, name string) map[string][]byte {
	t.Helper()
	secret, err := w.client.CoreV1().Secrets(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// put replaces the data of a Secret.
func (w *world) put(t testing.TB, name string, data map[string][]byte) {
	t.Helper()
	api := w.client.CoreV1().Secrets(namespace)
	for {
		secret, err := api.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		secret = secret.DeepCopy()
		secret.Data = data
		if _, err = api.Update(context.Background(), secret, metav1.UpdateOptions{}); err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

// fail has the API answer requests with an error, as long as it returns one.
func (w *world) fail(verb string, err func() error) {
	w.client.PrependReactor(verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := err(); err != nil {
			return true, nil, err
		}
		return false, nil, nil
	})
}

// TestFailuresAreReported has the API fail for a day.
func TestFailuresAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, works := newWorld(t), atomic.Bool{}
		w.fail("get", func() error {
			if works.Load() {
				return nil
			}
			return errors.New("the API is down")
		})
		i := w.issuer(t, time.Hour)
		servetest.Go(t, i.Run)
		<-time.After(10 * time.Minute)
		if d := i.Details(); len(d) != 1 || !strings.Contains(d[0], "the API is down") {
			t.Errorf("details %q, want the cause", d)
		}
		if n := w.log.Count("certificates not renewed"); n != 1 {
			t.Errorf("%d lines of the log, want one:\n%s", n, w.log)
		}
		works.Store(true)
		<-time.After(10 * time.Minute)
		if d := i.Details(); len(d) != 0 || len(w.data(t, "gateway-tls")) != 3 {
			t.Errorf("after the API has come back: details %q, %d files", d, len(w.data(t, "gateway-tls")))
		}
	})
}

// TestSecretsAreNotCreated runs without one of the Secrets: the others have their certificates, and the
// failure names it.
func TestSecretsAreNotCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.client.Tracker().Delete(secrets, namespace, "gateway-tls"); err != nil {
			t.Fatal(err)
		}
		i := w.issuer(t, time.Hour)
		servetest.Go(t, i.Run)
		synctest.Wait()
		if d := i.Details(); len(d) != 1 || !strings.Contains(d[0], "the Secret gateway-tls does not exist") {
			t.Errorf("details %q, want the name of the Secret", d)
		}
		if len(w.data(t, "pod-manager-tls")) != 3 {
			t.Error("the other Secret has no certificate")
		}
		for _, action := range w.client.Actions() {
			if verb := action.GetVerb(); verb != "get" && verb != "update" {
				t.Errorf("%s of %s: the issuer has no right to", verb, action.GetResource().Resource)
			}
		}
	})
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// TestReplicasRace has another replica write each Secret first.
func TestReplicasRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, conflicts := newWorld(t), 0
		w.fail("update", func() error {
			if conflicts++; conflicts%2 == 0 {
				return nil
			}
			return apierrors.NewConflict(secrets.GroupResource(), "x", errors.New("written in between"))
		})
		i := w.issuer(t, time.Hour)
		servetest.Go(t, i.Run)
		<-time.After(time.Second)
		synctest.Wait()
		if d := i.Details(); len(d) != 0 || len(w.data(t, "gateway-tls")) != 3 || conflicts != 6 {
			t.Errorf("details %q after %d updates, want each Secret written at the second one", d, conflicts)
		}
		if n := w.log.Count("certificate issued"); n != len(ids) {
			t.Errorf("%d certificates in the log, want the written ones", n)
		}
	})
}

// TestAuthoritiesThatCannotBeReadStay has a Secret that something else has written.
func TestAuthoritiesThatCannotBeReadStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(t, authority, map[string][]byte{mtls.AuthoritiesFile: []byte("no certificate")})
		i := w.issuer(t, time.Hour)
		servetest.Go(t, i.Run)
		synctest.Wait()
		if d := i.Details(); len(d) != 1 || !strings.Contains(d[0], authority) {
			t.Errorf("details %q, want the name of the Secret", d)
		}
		if string(w.data(t, authority)[mtls.AuthoritiesFile]) != "no certificate" {
			t.Error("the Secret was overwritten")
		}
	})
}
