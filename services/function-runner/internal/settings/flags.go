// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

// porchFlag describes a command-line flag of Porch's function runner, and the setting to which it applies.
type porchFlag struct {
	name  string
	field string // name of the field in Settings
	usage string
	value flag.Value
}

// porchFlags returns the command-line flags of Porch's function runner. Each flag sets a field of s. The field's
// current value becomes the flag's default. It is from an environment variable, or it is Porch's default.
func (s *Settings) porchFlags() []porchFlag {
	return slices.Concat(s.commonFlags(), s.execFlags(), s.podFlags(), s.registryFlags())
}

// setDefaults sets the defaults of flags that have no environment variable, and of the flags for registries. Callers
// must call it before they parse flags.
func (s *Settings) setDefaults() {
	s.PodManager.PullSecret = podmanager.DefaultPullSecret
	s.PodManager.CacheConfig = podmanager.CacheConfigPath
	s.PodManager.MaxWaitlistLength = podmanager.DefaultMaxWaitlistLength
	auth, tls := s.ImageResolver.AuthSecretPath, s.ImageResolver.TLSSecretPath
	s.registries = registryFlags{
		credentials: auth != "", authPath: cmp.Or(auth, "/var/tmp/config-secret/.dockerconfigjson"),
		authorities: tls != "", tlsPath: cmp.Or(tls, "/var/tmp/tls-secret/"),
	}
}

func (s *Settings) commonFlags() []porchFlag {
	g := &s.Gateway
	return []porchFlag{
		{name: "port", field: "Address", usage: "port to serve on", value: portValue{&g.Address}},
		{
			name: "disable-runtimes", field: "DisableRuntimes",
			usage: "runtimes not to use, comma-separated: exec, sandbox, pod",
			value: listValue{&g.DisableRuntimes},
		},
		{
			name: "log-level", field: "Telemetry.LogVerbosity", usage: "log verbosity, 0 (errors) to 5 (everything)",
			value: intValue{&s.Telemetry.LogVerbosity},
		},
		{
			name: "default-image-prefix", field: "DefaultImagePrefix",
			usage: "prefix of image names without a slash", value: textValue{&g.DefaultImagePrefix},
		},
		{
			name: "max-request-body-size", field: "MaxMessageBytes",
			usage: "largest request and response, in `bytes` or as 16Mi", value: &g.MaxMessageBytes,
		},
	}
}

func (s *Settings) execFlags() []porchFlag {
	g := &s.Gateway
	return []porchFlag{
		{
			name: "functions", field: "Exec.Functions", usage: "directory with function binaries",
			value: textValue{&g.Exec.Functions},
		},
		{
			name: "config", field: "Exec.Config", usage: "file that maps images to binaries",
			value: textValue{&g.Exec.Config},
		},
	}
}

func (s *Settings) podFlags() []porchFlag {
	g, p := &s.Gateway, &s.PodManager
	return []porchFlag{
		{
			name: "pod-namespace", field: "Namespace", usage: "namespace for function pods",
			value: textValue{&p.Namespace},
		},
		{name: "pod-ttl", field: "TTL", usage: "how long an unused pod lives", value: durationValue{&p.TTL}},
		{
			name: "scan-interval", field: "ScanInterval", usage: "time between two searches for pods to collect",
			value: durationValue{&p.ScanInterval},
		},
		{
			name: "function-pod-template", field: "Template", usage: "ConfigMap with the templates of function pods",
			value: textValue{&p.Template},
		},
		{
			name: "pod-cache-config", field: "CacheConfig",
			usage: "file of functions with their own settings", value: textValue{&p.CacheConfig},
		},
		{
			name: "warm-up-pod-cache", field: "WarmUp", usage: "keep a pod of each of these functions",
			value: boolValue{&p.WarmUp},
		},
		{
			name: "max-waitlist-length", field: "MaxWaitlistLength",
			usage: "evaluations on one pod before a further one is started", value: intValue{&p.MaxWaitlistLength},
		},
		{
			name: "max-parallel-pods-per-function", field: "MaxPodsPerFunction", usage: "most pods of one function",
			value: intValue{&p.MaxPodsPerFunction},
		},
		{
			name: "max-grpc-retries", field: "Pod.MaxRetries", usage: "further pods to try after one broke",
			value: intValue{&g.Pod.MaxRetries},
		},
	}
}

func (s *Settings) registryFlags() []porchFlag {
	p, r := &s.PodManager, &s.registries
	return []porchFlag{
		{
			name: "enable-private-registries", field: "EnablePrivateRegistries",
			usage: "use credentials for registries", value: boolValue{&r.credentials},
		},
		{
			name: "registry-auth-secret-path", field: "AuthSecretPath",
			usage: "credentials, as docker's config.json", value: textValue{&r.authPath},
		},
		{
			name: "registry-auth-secret-name", field: "PullSecret", usage: "name of the pull secret that pods get",
			value: textValue{&p.PullSecret},
		},
		{
			name: "enable-private-registries-tls", field: "EnableTLS",
			usage: "use own certificate authorities for registries", value: boolValue{&r.authorities},
		},
		{
			name: "tls-secret-path", field: "TLSSecretPath", usage: "directory with their certificates",
			value: textValue{&r.tlsPath},
		},
	}
}

// These types implement flag.Value. The method Set parses a flag and stores the value in the setting *p.
type (
	textValue     struct{ p *string }
	intValue      struct{ p *int }
	boolValue     struct{ p *bool }
	durationValue struct{ p *time.Duration }
	listValue     struct{ p *[]string }
	portValue     struct{ p *string }
)

func (v textValue) Set(s string) error { *v.p = s; return nil }

func (v intValue) Set(s string) (err error) {
	*v.p, err = strconv.Atoi(s)
	return describeValid(err, "a whole number")
}

func (v boolValue) Set(s string) (err error) {
	*v.p, err = strconv.ParseBool(s)
	return describeValid(err, "true or false")
}

// IsBoolFlag makes the flag package accept "--flag" as a short form of "--flag=true".
func (v boolValue) IsBoolFlag() bool { return true }

func (v durationValue) Set(s string) (err error) {
	*v.p, err = time.ParseDuration(s)
	return describeValid(err, "a time with its unit, such as 90s or 30m")
}

// describeValid returns nil if err is nil. Otherwise it replaces the parse error err by an error that describes the
// valid values, such as "a whole number".
func describeValid(err error, what string) error {
	if err != nil {
		return errors.New("it must be " + what)
	}
	return nil
}

func (v listValue) Set(s string) error {
	*v.p = config.SplitList(s)
	return nil
}

func (v portValue) Set(s string) error {
	port, err := strconv.Atoi(s)
	if err != nil || port < 1 || port > 65535 {
		return errors.New("it must be 1 to 65535")
	}
	*v.p = ":" + s
	return nil
}

// String returns the current value of the flag, or an empty text if v.p is nil. The pointer is nil in a zero textValue.
// The flag package calls String on a zero textValue to decide if the help text shows the flag's default.
func (v textValue) String() string     { return showValue(v.p) }
func (v intValue) String() string      { return showValue(v.p) }
func (v boolValue) String() string     { return showValue(v.p) }
func (v durationValue) String() string { return showValue(v.p) }
func (v portValue) String() string     { return strings.TrimPrefix(showValue(v.p), ":") }

func (v listValue) String() string {
	if v.p == nil {
		return ""
	}
	return strings.Join(*v.p, ",")
}

func showValue[T any](p *T) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(*p)
}
