// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
)

// IssuerConfig configures the issuer of certificates, for clusters without another issuer.
type IssuerConfig struct {
	// Secret is the name of the Secret with the certificate authority of the [issuer of certificates](#the-issuer), in the
	// pod-manager's own namespace. If it is empty, there is no issuer.
	Secret string
	// Certificates are the certificates to issue, as SECRET=SPIFFE-ID pairs. If it is empty, the issuer issues gateway-tls
	// and image-resolver-tls.
	Certificates []string
	// Life is the life of certificates. Authorities live 30 times as long. Certificates are renewed at half of their life.
	// Half of their life must be longer than Kubernetes takes to update a volume: twice the kubelet's `syncFrequency`.
	Life time.Duration `default:"24h"`
}

// issuedByDefault is the default of [IssuerConfig.Certificates]. These programs read their certificate from a
// Secret.
var issuedByDefault = []string{
	"gateway-tls=spiffe://function-runner/gateway",
	"image-resolver-tls=spiffe://function-runner/image-resolver",
}

// secrets returns the names of the Secrets that contain private keys. FunctionConfigs must not pass these Secrets to
// pods.
func (c *IssuerConfig) secrets() []string {
	if c.Secret == "" {
		return nil
	}
	ids, _ := c.ids() // Validate has rejected invalid pairs
	return append(slices.Sorted(maps.Keys(ids)), c.Secret)
}

// ids returns the SPIFFE IDs of the certificates to issue, by the names of their Secrets.
func (c *IssuerConfig) ids() (map[string]mtls.ID, error) {
	pairs, ids, problems := c.Certificates, map[string]mtls.ID{}, []error(nil)
	if len(pairs) == 0 {
		pairs = issuedByDefault
	}
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		id, err := mtls.ParseID(text)
		if err == nil && (len(validation.IsDNS1123Subdomain(name)) > 0 || name == c.Secret) {
			err = fmt.Errorf("%q is not the name of another Secret", name)
		}
		ids[name] = id
		problems = append(problems, err)
	}
	return ids, errors.Join(problems...)
}

const (
	// livesOfAuthority is the life of a certificate authority as a multiple of a certificate's life. An authority is
	// replaced at half of its life. A new authority signs certificates only once its age reaches a certificate's life,
	// because all programs trust it by then.
	livesOfAuthority = 30
	minLife          = 30 * time.Second
	maxIssuerPause   = time.Minute
)

// check validates the settings of the issuer, and adds problems to checks.
func (c *IssuerConfig) check(checks *config.Checks) {
	if c.Secret == "" {
		return
	}
	checks.That(len(validation.IsDNS1123Subdomain(c.Secret)) == 0, "Issuer.Secret", c.Secret,
		"the name of a Secret, or nothing for no issuer")
	_, err := c.ids()
	checks.That(err == nil, "Issuer.Certificates", strings.Join(c.Certificates, ","),
		"pairs of another Secret and a SPIFFE ID, such as gateway-tls=spiffe://function-runner/gateway")
	checks.That(c.Life >= minLife, "Issuer.Life", c.Life, minLife.String()+" or more")
}

// certificateIssuer is the component that issues certificates. The zero value issues no certificates.
type certificateIssuer struct {
	component serve.Component
	// refused receives the error if the issuer cannot issue this program's own certificate. It is nil if another issuer
	// provides this certificate.
	refused <-chan error
}

// newIssuer returns an issuer of certificates. The issuer writes its certificate authority, and the certificates of
// other programs, to Secrets in the given namespace. If this program has no certificate yet, the issuer also issues a
// certificate for this program and keeps it in memory. The argument own is the SPIFFE ID in this certificate.
func (c *Config) newIssuer(
	setup issuer.Config, own, namespace string, frame *servermain.Frame,
) (certificateIssuer, error) {
	log := frame.Telemetry.Log
	client, err := kubeclient.Connect(c.Kubeconfig, kubeclient.NewClock(log), log)
	if err != nil {
		return certificateIssuer{}, err
	}
	setup.Secrets = client.CoreV1().Secrets(namespace)
	setup.Authority = c.Issuer.Secret
	setup.Life = c.Issuer.Life
	setup.AuthorityLife = livesOfAuthority * c.Issuer.Life
	setup.Spread = c.Issuer.Life
	setup.Pause = min(maxIssuerPause, c.Issuer.Life/20)
	setup.Log = log
	setup.Meter = frame.Telemetry.Meters.Meter("pod-manager/issuer")
	result := certificateIssuer{}
	if frame.Identity == nil {
		identity := mtls.Hold(log, frame.Telemetry.Meters)
		setup.Held, result.refused = newHeldCertificate(own, identity)
		result.component = serve.Component{Tasks: []serve.Task{identity.Run}, Ready: identity.Available()}
		frame.Identity = identity
	}
	i := issuer.New(setup)
	result.component.Tasks = append(result.component.Tasks, i.Run)
	frame.Health.Explain(func() []string { return slices.Concat(frame.Identity.Details(), i.Details()) })
	return result, nil
}

// newHeldCertificate configures this program's own certificate, which the issuer keeps in memory. The issuer passes
// each new certificate to identity. If it cannot issue the certificate, the returned channel receives the error.
func newHeldCertificate(id string, identity *mtls.Identity) (*issuer.Held, <-chan error) {
	refused := make(chan error, 1)
	own, err := mtls.ParseID(id)
	if err != nil {
		panic(err) // cannot happen: IDs of our programs are valid constants
	}
	return &issuer.Held{ID: own, Use: identity.Replace, Refused: func(_ context.Context, why error) {
		select {
		case refused <- why:
		default: // an earlier error is still unread
		}
	}}, refused
}
