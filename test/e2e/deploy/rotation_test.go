// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

var (
	rotateFor   = flag.Duration("rotate.time", 50*time.Second, "how long certificates are rotated")
	rotateEvery = flag.Duration("rotate.every", 10*time.Second, "the time between two rotations")
	rotateLife  = flag.Duration("rotate.life", 45*time.Second, "how long each of these certificates is valid at least")
)

// programs are the ones that have a certificate each.
var programs = []string{"gateway", "pod-manager", "image-resolver"}

// longLife is the life of certificates that are replaced after an unknown time.
const longLife = time.Hour

// TestCertificatesRotateUnderLoad replaces all certificates every ten seconds under 30 callers, and the authority in
// the middle, in Secrets as cert-manager does. Certificates expire within the run, unless the machine takes so long to
// bring them into pods that they must live longer. No request fails.
func TestCertificatesRotateUnderLoad(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	at, first, second := aside("rotation"), mtlstest.NewAuthority(t, 24*time.Hour), mtlstest.NewAuthority(t, 24*time.Hour)
	dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/microservices", "mutual-tls-secrets")
	var secrets []*unstructured.Unstructured
	for _, name := range programs {
		secrets = append(secrets, secretOf(name, issued(t, name, first, first.PEM, longLife)))
	}
	at.install(t, append(secrets, s.OnTheBed(t, suite.Build(t, dir))...))
	both := append(append([]byte(nil), first.PEM...), second.PEM...)
	parts := []struct {
		authority *mtlstest.Authority
		trusted   []byte
	}{{first, first.PEM}, {first, both}, {second, both}, {second, second.PEM}} // all trust the second before it issues
	rotations, seen := max(len(parts), int(*rotateFor / *rotateEvery)), make(map[string]bool)
	at.thirtyCallers(t, func() {
		begin := time.Now()
		slowest := at.rotate(t, first, first.PEM, longLife)
		for n := range rotations {
			part := parts[n*len(parts)/rotations]
			life := max(*rotateLife, *rotateEvery+5*slowest) // it must not expire before the next one is in use
			slowest = max(slowest, at.rotate(t, part.authority, part.trusted, life))
			seen[at.shown(t)] = true
			<-time.After(time.Until(begin.Add(time.Duration(n+1) * *rotateEvery)))
		}
		t.Logf("the slowest rotation took %v", slowest.Round(time.Millisecond))
	})
	if len(seen) != rotations {
		t.Errorf("a pod-manager showed %d certificates in %d rotations", len(seen), rotations)
	}
}

// thirtyCallers has 30 callers evaluate, by a binary and in pods, until a task ends. No evaluation fails.
func (p place) thirtyCallers(t *testing.T, do func()) {
	t.Helper()
	images := []string{setNamespace, inPod(t)}
	for _, image := range images {
		p.evaluates(t, image)
	}
	conns := make([]*grpc.ClientConn, 30)
	for i := range conns {
		conns[i] = p.caller(t)
	}
	evaluations, err := suite.UnderLoad(t.Context(), len(conns), pause, func(ctx context.Context, number int) error {
		return suite.SetNamespace(ctx, conns[number], images[number%len(images)])
	}, do)
	t.Logf("%d evaluations", evaluations)
	if err != nil {
		t.Errorf("a caller failed: %v", err)
	}
}

// issued is the data of a program's Secret with a new certificate.
func issued(t *testing.T, name string, authority *mtlstest.Authority, trusted []byte, life time.Duration) (
	data map[string][]byte,
) {
	t.Helper()
	certificate, key := authority.Issue(t, "spiffe://function-runner/"+name, life)
	return map[string][]byte{mtls.CertificateFile: certificate, mtls.KeyFile: key, mtls.AuthoritiesFile: trusted}
}

// secretOf is the Secret of a program.
func secretOf(name string, data map[string][]byte) *unstructured.Unstructured {
	encoded := make(map[string]any, len(data))
	for key, content := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(content)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": encoded,
		"metadata": map[string]any{"name": name + "-tls", "namespace": usual.system},
	}}
}

// rotate replaces the certificates of all programs, and has the kubelet bring them into the pods now. It returns how
// long it took until all pods used them.
func (p place) rotate(t *testing.T, authority *mtlstest.Authority, trusted []byte, life time.Duration) time.Duration {
	t.Helper()
	ctx, begin := suite.Context(t), time.Now()
	expiries := map[string]string{} // by the pods that do not use their new certificate yet
	for _, name := range programs {
		data := issued(t, name, authority, trusted, life)
		for _, pod := range p.serving(t, p.system, "app="+name) {
			expiries[pod.Name] = expiryOf(t, data)
		}
		p.changeSecret(ctx, t, name+"-tls", data)
	}
	since := metav1.NewTime(begin.Truncate(time.Second))
	for len(expiries) > 0 {
		for pod := range expiries {
			s.Touch(ctx, t, p.system, pod)
		}
		<-time.After(time.Second) // also, certificates of two rotations expire in different seconds
		for pod, expiry := range expiries {
			if strings.Contains(logOf(ctx, p.system, pod, &since), expiry) {
				delete(expiries, pod)
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("these pods do not log the expiry of their new certificate: %v", expiries)
		}
	}
	return time.Since(begin)
}

// expiryOf returns the expiry of a program's certificate as programs log it when they begin to use the certificate.
func expiryOf(t *testing.T, data map[string][]byte) string {
	t.Helper()
	pair, err := tls.X509KeyPair(data[mtls.CertificateFile], data[mtls.KeyFile])
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.NotAfter.Format(time.RFC3339)
}

// touchPrograms has the kubelet bring the Secrets of all programs into their pods now.
func (p place) touchPrograms(t *testing.T) {
	t.Helper()
	for _, name := range programs {
		for _, pod := range p.serving(t, p.system, "app="+name) {
			s.Touch(suite.Context(t), t, p.system, pod.Name)
		}
	}
}

// shown returns the certificate that a pod-manager shows.
func (p place) shown(t *testing.T) string {
	t.Helper()
	pods := p.serving(t, p.system, "app=pod-manager")
	if len(pods) == 0 {
		return ""
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(suite.Context(t), "tcp", pods[0].Status.PodIP+":9448")
	if err != nil {
		t.Errorf("connect to %s: %v", pods[0].Name, err)
		return ""
	}
	defer func() { _ = conn.Close() }()
	return string(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw)
}
