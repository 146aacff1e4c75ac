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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// installObserved installs a system with a short queue, and credentials for registries; with -observe.long also with
// mutual TLS and a policy, on which pods wait for a while when they start, remembered results, and
// callers with identities.
func (p place) installObserved(t *testing.T) {
	t.Helper()
	ctx := suite.Context(t)
	components := []string{"private-registry"}
	if *observeLong {
		components = append(components, "mutual-tls", "callers")
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
			mountPolicy(t, o)
			suite.SetVariable(t, o, "FNR_RESULT_CACHE_IMAGES", remembered(t)+"/*")
		}
	}
	p.clean(t)
	for _, namespace := range suite.Namespaces(t) { // pods wait for the credentials
		s.Apply(ctx, t, false, p.objects(t, suite.Current, []*unstructured.Unstructured{namespace})...)
	}
	p.credentials(ctx, t, `{"auths":{}}`)
	p.policy(ctx, t, allowAll)
	p.replace(t, objects)
}

// allowAll is a policy with a rule.
const allowAll = "default: allow\nrules: [{name: none, images: [none.example.com/**], action: deny}]"

// policyMap is the ConfigMap with the policy.
const policyMap = "policy"

// mountPolicy has a gateway follow the policy.
func mountPolicy(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	const directory = "/etc/function-runner/policy"
	suite.SetVariable(t, deployment, "FNR_POLICY_FILE", directory+"/policy.yaml")
	mount(t, deployment, directory, map[string]any{"name": policyMap, "configMap": map[string]any{"name": policyMap}})
}

// mount mounts a volume.
func mount(t *testing.T, deployment *unstructured.Unstructured, directory string, volume map[string]any) {
	t.Helper()
	suite.ChangeContainer(t, deployment, func(container map[string]any) {
		mounts, _ := container["volumeMounts"].([]any)
		container["volumeMounts"] = append(mounts, map[string]any{"name": volume["name"], "mountPath": directory})
	})
	path := []string{"spec", "template", "spec", "volumes"}
	volumes, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	volumes = append(volumes, volume)
	if err := unstructured.SetNestedSlice(deployment.Object, volumes, path...); err != nil {
		t.Fatal(err)
	}
}

// policy writes the policy of the gateways.
func (p place) policy(ctx context.Context, t *testing.T, content string) {
	maps := s.Client.CoreV1().ConfigMaps(p.system)
	policy := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: policyMap}, Data: map[string]string{"policy.yaml": content},
	}
	_, err := maps.Update(ctx, policy, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(ctx, policy, metav1.CreateOptions{})
	}
	if err != nil {
		t.Errorf("write the policy: %v", err)
	}
}

// brokenPolicy writes a policy that no gateway takes.
func brokenPolicy(ctx context.Context, t *testing.T, at place) {
	at.policy(ctx, t, "default: perhaps")
	at.touch(ctx, t, "gateway")
	<-ctx.Done()
	over := context.WithoutCancel(ctx)
	at.policy(over, t, allowAll)
	at.touch(over, t, "gateway")
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
