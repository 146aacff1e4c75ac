// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	tlscredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestCallersProveWhoTheyAre installs the component callers, and calls all ports as attackers do, and port 9443 with
// stolen certificates of our own programs.
func TestCallersProveWhoTheyAre(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	at := aside("callers")
	dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/microservices", "mutual-tls", "callers")
	objects := s.OnTheBed(t, suite.Build(t, dir))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == "gateway" {
			suite.SetVariable(t, o, "FNR_STATUS_ADDRESS", "127.0.0.1:9447")
		}
	}
	at.install(t, withCallersCertificate(t, objects))
	at.evaluates(t, inPod(t)) // as Porch does

	at.attackersGetTheTable(t)
	at.fnctlReachesIt(t)
	for name, tc := range map[string]struct {
		certificate string
		want        codes.Code
	}{
		"no certificate":       {want: codes.Unauthenticated},
		"a certificate":        {certificate: callerSecret},
		"a stolen certificate": {certificate: "image-resolver-tls", want: codes.PermissionDenied},
	} {
		conn := at.secureCaller(t, tc.certificate)
		err := suite.SetNamespace(suite.Context(t), conn, setNamespace, grpc.WaitForReady(true))
		if status.Code(err) != tc.want {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// callerSecret is the Secret with the certificate of a caller.
const callerSecret = "ci-tls"

// withCallersCertificate has the pod-manager issue a certificate for a caller, and one with the pod-manager's own ID,
// in addition to the programs' certificates.
func withCallersCertificate(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	further := []string{callerSecret, "pod-manager-tls"}
	certificates := []string{callerSecret + "=spiffe://function-runner/callers/ci"}
	for _, program := range programs {
		certificates = append(certificates, program+"-tls=spiffe://function-runner/"+program)
	}
	for _, o := range objects {
		switch o.GetKind() + "/" + o.GetName() {
		case "Deployment/pod-manager":
			suite.SetVariable(t, o, "FNR_ISSUER_CERTIFICATES", strings.Join(certificates, ","))
		case "Role/issuer":
			rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
			rule, _ := rules[0].(map[string]any)
			names, _ := rule["resourceNames"].([]any)
			rule["resourceNames"] = append(names, further[0], further[1])
			if err := unstructured.SetNestedSlice(o.Object, rules, "rules"); err != nil {
				t.Fatal(err)
			}
		case "Secret/gateway-tls":
			for _, name := range further {
				secret := o.DeepCopy()
				secret.SetName(name)
				objects = append(objects, secret)
			}
		}
	}
	return objects
}

// fnctlReachesIt has fnctl call the gateway through kubectl.
func (p place) fnctlReachesIt(t *testing.T) {
	t.Helper()
	fnctl := gobuild.Program(t, filepath.Join(root, "fnctl"), ".")
	out, err := exec.CommandContext(suite.Context(t), fnctl, "pods", "--namespace="+p.system).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "set-namespace") {
		t.Errorf("fnctl pods: %v\n%s", err, out)
	}
	p.programsReachIt(t, fnctl)
}

// programsReachIt runs unchanged programs, whose function runs in the cluster by fnctl in the place of docker.
func (p place) programsReachIt(t *testing.T, fnctl string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		file := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	write("web/kustomization.yaml", "resources: [service.yaml]\ntransformers: [function.yaml]\n")
	write("web/service.yaml", service)
	write("web/function.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: function\n  annotations:\n"+
		"    config.kubernetes.io/function: |\n      container: {image: '"+inPod(t)+"'}\n"+
		"data: {namespace: from-the-cluster}\n")
	write("package/service.yaml", service)
	write("package/Kptfile", "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: package}\n"+
		"pipeline:\n  mutators:\n  - image: "+inPod(t)+"\n    configMap: {namespace: from-the-cluster}\n")
	write("skaffold.yaml", "apiVersion: skaffold/v4beta11\nkind: Config\nmanifests: {kpt: [package]}\n")
	write(".skaffold/config", "global: {collect-metrics: false, update-check: false, survey: {disable-prompt: true}}\n")
	for _, name := range []string{"kustomize", "kpt", "skaffold"} {
		variable := "FNR_" + strings.ToUpper(name)
		if os.Getenv(variable) == "" {
			t.Fatalf("%s is not set: make e2e-one sets it", variable)
		}
		if err := os.Symlink(os.Getenv(variable), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{
		"kustomize build --enable-alpha-plugins web",
		"kpt fn render package --output unwrap",
		"skaffold render --offline --digest-source=none --interactive=false",
	} {
		cmd := exec.CommandContext(suite.Context(t), "sh", "-ec",
			`eval "$("$0" docker install bin)"; PATH=$PWD:$PATH `+command, fnctl)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "FNCTL_NAMESPACE="+p.system, "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "namespace: from-the-cluster") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// token returns a token of the account "default" of a namespace.
func (p place) token(t *testing.T, namespace, audience string) string {
	t.Helper()
	return tokenOf(t, namespace, "default", audience)
}

// tokenOf returns a token of an account, for the Kubernetes API if no audience is given.
func tokenOf(t *testing.T, namespace, account string, audiences ...string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	granted, err := s.Client.CoreV1().ServiceAccounts(namespace).CreateToken(suite.Context(t), account, request,
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return granted.Status.Token
}

// secureCaller returns a connection to port 9443 of the gateway, with the certificate in a Secret if it is named.
func (p place) secureCaller(t *testing.T, certificate string) *grpc.ClientConn {
	t.Helper()
	ctx := suite.Context(t)
	data := func(name string) map[string][]byte {
		secret, err := s.Client.CoreV1().Secrets(p.system).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return secret.Data
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data("gateway-tls")["ca.crt"])
	secure := &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection verifies: the certificate has no host name
		VerifyConnection: func(state tls.ConnectionState) error {
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
			return err
		},
	}
	if certificate != "" {
		pair, err := tls.X509KeyPair(data(certificate)["tls.crt"], data(certificate)["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	conn, err := grpc.NewClient(s.ServiceAddress(ctx, t, p.system, "gateway", "9443"),
		grpc.WithTransportCredentials(tlscredentials.NewTLS(secure)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
