// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestMustWrite(t *testing.T) {
	const kind = corev1.SecretTypeDockerConfigJson
	foreign := func(content string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "s"}, Type: kind,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
		}
	}
	ours := func(content string) *corev1.Secret { return wantedSecret(nil, "s", "/file", []byte(content)) }
	edited := ours("new")
	edited.Data[corev1.DockerConfigJsonKey] = []byte("edited")
	back := ours("old")
	back.Data[corev1.DockerConfigJsonKey] = []byte("new")

	tests := map[string]struct {
		reason  string
		found   *corev1.Secret
		changed bool
		want    bool
		says    bool
	}{
		"none":              {"it was deleted, or never created", nil, false, true, false},
		"same":              {"there is nothing to do", ours("new"), true, false, false},
		"older":             {"the file has changed", ours("old"), true, true, false},
		"another replica's": {"whose file may be ahead", ours("old"), false, false, false},
		"Porch's":           {"it is taken over", foreign("new"), true, true, true},
		"made meanwhile":    {"ours was deleted and replaced from outside", foreign("old"), false, true, true},
		"edited":            {"the file says what it holds", edited, false, true, true},
		"edited back":       {"its checksum is of something else", back, false, true, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			write, remark, err := mustWrite(tc.found, []byte("new"), tc.changed)
			if err != nil || write != tc.want || (remark != "") != tc.says {
				t.Errorf("mustWrite = %v, %q, %v, want %v: %s", write, remark, err, tc.want, tc.reason)
			}
		})
	}
}

// TestUnchangedReplicaRepairsSecret has a replica whose file is old write its credentials when it starts, and go away.
func TestUnchangedReplicaRepairsSecret(t *testing.T) {
	config := func(password string) []byte {
		content, _, err := Parse([]byte(`{"auths":{"r":{"username":"u","password":"` + password + `"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	synctest.Test(t, func(t *testing.T) {
		secrets := fake.NewClientset().CoreV1().Secrets("")
		k := New(Config{
			Secrets: secrets, Name: "s", CheckInterval: time.Minute,
			Log: slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter(""),
		})
		expect := func(password string) {
			t.Helper()
			synctest.Wait()
			s, err := secrets.Get(t.Context(), "s", metav1.GetOptions{})
			if err != nil || !bytes.Equal(s.Data[corev1.DockerConfigJsonKey], config(password)) {
				t.Errorf("the Secret is %v, %v, want the %s password", s, err, password)
			}
		}
		k.recordContent(t.Context(), config("new"), nil)
		go k.runLoop(t.Context(), nil)
		expect("new")
		writeOld := func() {
			t.Helper()
			old := wantedSecret(nil, "s", "/file", config("old"))
			if _, err := secrets.Update(t.Context(), old, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			<-time.After(90 * time.Second)
			expect("old") // the other replica's file may be the newer one
			<-time.After(2 * time.Minute)
		}
		writeOld()
		expect("new")
		writeOld()
		expect("old") // the other replica repeats its content, so its file stays as it is
	})
}

func TestMustWriteLeavesOtherTypes(t *testing.T) {
	found := &corev1.Secret{Type: corev1.SecretTypeOpaque}
	write, _, err := mustWrite(found, []byte("{}"), true)
	if write || err == nil || !strings.Contains(err.Error(), "another name in --registry-auth-secret-name") {
		t.Errorf("mustWrite = %v, %v, want an error with what to do: another owner's Secret must not be lost", write, err)
	}
}

func TestSecretKeepsWhatOthersSaid(t *testing.T) {
	found := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "s", ResourceVersion: "7", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"},
	}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{"further": []byte("c")}}
	s := wantedSecret(found, "s", "/file", []byte("{}"))
	if s.Labels["team"] != "a" || s.Annotations["note"] != "b" || s.ResourceVersion != "7" || len(s.Data) != 2 {
		t.Errorf("the Secret is %v, want labels, annotations and version as they were, and our data only", s.ObjectMeta)
	}
	if found.Labels[labelManagedBy] != "" {
		t.Error("the Secret that was found has been changed")
	}
}
