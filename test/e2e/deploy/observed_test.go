// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// installObserved installs a system with a short queue, and credentials for registries; with -observe.long also with
// mutual TLS, remembered results, callers with identities, and a template of function pods.
func (p place) installObserved(t *testing.T) {
	t.Helper()
	ctx := suite.Context(t)
	components := []string{"private-registry"}
	if *observeLong {
		components = append(components, "mutual-tls", "callers", "pod-template")
	}
	objects := s.OnTheBed(t, suite.Build(t,
		manifests.Combine(t, filepath.Join(root, "deploy"), "base/microservices", components...)))
	for _, o := range objects {
		switch {
		case o.GetKind() != "Deployment":
		case o.GetName() == "pod-manager":
			suite.SetVariable(t, o, "FNR_MAX_QUEUE_PER_FUNCTION", crowdQueue)
			suite.SetVariable(t, o, "FNR_TTL", "2m") // so that unused pods expire
		case o.GetName() == "image-resolver":
			suite.SetVariable(t, o, "FNR_CACHE_TAG_TTL", movingTag.String())
		case o.GetName() == "gateway" && *observeLong:
			suite.SetVariable(t, o, "FNR_RESULT_CACHE_IMAGES", remembered(t)+"/*")
		}
	}
	p.clean(t)
	for _, namespace := range suite.Namespaces(t) { // pods wait for the credentials
		s.Apply(ctx, t, false, p.objects(t, suite.Current, []*unstructured.Unstructured{namespace})...)
	}
	p.credentials(ctx, t, `{"auths":{}}`)
	p.replace(t, objects)
}

// noAuthority overwrites the key that certificates are issued with, until ctx ends, after it has issued a certificate
// for the gateway that ends within the hour.
func noAuthority(ctx context.Context, t *testing.T, at place) {
	const authority = "function-runner-authority"
	issuing := at.secret(ctx, t, authority)
	pair, err := tls.X509KeyPair(issuing[mtls.AuthoritiesFile], issuing[mtls.KeyFile])
	if err != nil {
		t.Errorf("read the authority: %v", err)
		return
	}
	at.changeSecret(ctx, t, authority, map[string][]byte{mtls.KeyFile: []byte("not a key")})
	at.changeSecret(ctx, t, "gateway-tls", shortLived(t, pair))
	at.touch(ctx, t, "gateway")
	<-ctx.Done()
	over := context.WithoutCancel(ctx)
	at.changeSecret(over, t, authority, issuing)
	at.changeSecret(over, t, "gateway-tls", map[string][]byte{mtls.CertificateFile: nil, mtls.KeyFile: nil})
	suite.Until(over, t, "the gateway's certificate is issued again", func() (bool, string) {
		return len(at.secret(over, t, "gateway-tls")[mtls.CertificateFile]) > 0, ""
	})
	at.touch(over, t, "gateway")
}

// shortLived returns a certificate for the gateway and its key, as they are in a Secret. Of a life of a day, less than
// the hour is left in which programs warn; of one of an hour it would be the last quarter.
func shortLived(t *testing.T, authority tls.Certificate) map[string][]byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Error(err)
		return nil
	}
	now := time.Now()
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-23 * time.Hour), NotAfter: now.Add(50 * time.Minute),
		URIs:     []*url.URL{{Scheme: "spiffe", Host: "function-runner", Path: "/gateway"}},
		KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth,
		},
	}, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		t.Error(err)
		return nil
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Error(err)
		return nil
	}
	return map[string][]byte{
		mtls.CertificateFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		mtls.KeyFile:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// secret returns what is in a Secret.
func (p place) secret(ctx context.Context, t *testing.T, name string) map[string][]byte {
	secret, err := s.Client.CoreV1().Secrets(p.system).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Errorf("read a Secret: %v", err)
		return nil
	}
	return secret.Data
}

// changeSecret replaces values in a Secret.
func (p place) changeSecret(ctx context.Context, t *testing.T, name string, values map[string][]byte) {
	patch, err := json.Marshal(map[string]any{"data": values})
	if err != nil {
		t.Error(err)
		return
	}
	_, err = s.Client.CoreV1().Secrets(p.system).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Errorf("write a Secret: %v", err)
	}
}
