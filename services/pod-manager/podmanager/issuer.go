// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
)

// IssuerConfig is the settings of the issuer of certificates, for clusters without another one.
type IssuerConfig struct {
	// Secret is the Secret with the authority; empty for no issuer. It is in the namespace that this program
	// runs in.
	Secret string
	// Certificates are the certificates to issue, as SECRET=SPIFFE-ID; those of our three programs if there are
	// none.
	Certificates []string
	// Own is the one of these for this program, whose certificate is written into FNR_TLS_DIRECTORY.
	Own string `default:"pod-manager-tls"`
	// Life is how long certificates are valid, and AuthorityLife how long authorities are.
	Life          time.Duration `default:"24h"`
	AuthorityLife time.Duration `split_words:"true" default:"720h"`
	// VolumeDelay is how long a change of a Secret takes at most until pods have it.
	VolumeDelay time.Duration `split_words:"true" default:"5m"`
}

// ownPrograms are the certificates that are issued by default.
var ownPrograms = []string{
	"gateway-tls=spiffe://function-runner/gateway",
	"pod-manager-tls=spiffe://function-runner/pod-manager",
	"image-resolver-tls=spiffe://function-runner/image-resolver",
}

// secrets returns the names of the Secrets with keys.
func (c *IssuerConfig) secrets() []string {
	if c.Secret == "" {
		return nil
	}
	ids, _ := c.ids() // has been checked
	return append(slices.Sorted(maps.Keys(ids)), c.Secret)
}

// ids returns the SPIFFE IDs of certificates, by their Secrets.
func (c *IssuerConfig) ids() (map[string]mtls.ID, error) {
	pairs, ids, problems := c.Certificates, map[string]mtls.ID{}, []error(nil)
	if len(pairs) == 0 {
		pairs = ownPrograms
	}
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		id, err := mtls.ParseID(text)
		if err == nil && (len(validation.IsDNS1123Subdomain(name)) > 0 || name == c.Secret) {
			err = fmt.Errorf("%q is not the name of another Secret", name)
		}
		ids[name], problems = id, append(problems, err)
	}
	return ids, errors.Join(problems...)
}

// Bounds of the issuer's settings.
const (
	volumeDelays     = 2 // certificates are renewed at half of their life
	livesOfAuthority = 8
	longestPause     = time.Minute
)

// Awaited reports whether this program's own certificate comes from its issuer.
func (c *IssuerConfig) Awaited() bool { return c.Secret != "" && c.Own != "" }

// check adds the problems of the settings.
func (c *IssuerConfig) check(checks *config.Checks) {
	if c.Secret == "" {
		return
	}
	checks.That(len(validation.IsDNS1123Subdomain(c.Secret)) == 0, "Issuer.Secret", c.Secret,
		"the name of a Secret, or nothing for no issuer")
	ids, err := c.ids()
	checks.That(err == nil, "Issuer.Certificates", strings.Join(c.Certificates, ","),
		"pairs of another Secret and a SPIFFE ID, such as gateway-tls=spiffe://function-runner/gateway")
	checks.That(c.Own == "" || ids[c.Own] != mtls.ID{}, "Issuer.Own", c.Own,
		"one of the Secrets in FNR_ISSUER_CERTIFICATES, or nothing")
	checks.That(c.VolumeDelay > 0, "Issuer.VolumeDelay", c.VolumeDelay, "more than zero")
	checks.That(c.Life >= volumeDelays*c.VolumeDelay, "Issuer.Life", c.Life, "twice FNR_ISSUER_VOLUME_DELAY, or more")
	checks.That(c.AuthorityLife >= livesOfAuthority*c.Life, "Issuer.AuthorityLife", c.AuthorityLife,
		"eight times FNR_ISSUER_LIFE, or more")
}

// issuer returns the component that issues certificates, and adds what is wrong with it to the details of
// health checks. Without an issuer it is empty.
func (c *Config) issuer(frame program.Frame) (serve.Component, error) {
	if c.Issuer.Secret == "" {
		return serve.Component{}, nil
	}
	log := frame.Telemetry.Log
	client, err := kubeclient.Connect(c.Kubeconfig, kubeclient.NewClock(log), log)
	if err != nil {
		return serve.Component{}, err
	}
	namespace, err := kube.OwnNamespace()
	if err != nil {
		return serve.Component{}, err
	}
	ids, err := c.Issuer.ids()
	if err != nil {
		return serve.Component{}, err
	}
	config := c.Issuer.config(client.CoreV1().Secrets(namespace), frame)
	config.Certificates, config.Own, config.Directory = ids, c.Issuer.Own, frame.Identity.Directory()
	i, err := issuer.New(config)
	if err != nil {
		return serve.Component{}, err
	}
	frame.Health.Explain(func() []string { return slices.Concat(frame.Identity.Details(), i.Details()) })
	return serve.Component{Tasks: []serve.Task{i.Run}}, nil
}

// config is what each issuer needs.
func (c *IssuerConfig) config(secrets corev1client.SecretInterface, frame program.Frame) issuer.Config {
	return issuer.Config{
		Secrets: secrets, Authority: c.Secret,
		Life: c.Life, AuthorityLife: c.AuthorityLife, Spread: c.Life, Pause: min(longestPause, c.Life/20),
		Log: frame.Telemetry.Log, Meter: frame.Telemetry.Meters.Meter("pod-manager/issuer"),
	}
}
