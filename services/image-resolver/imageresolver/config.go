// SPDX-License-Identifier: Apache-2.0

package imageresolver

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// Config contains the settings of the image-resolver, in addition to the settings of every program.
type Config struct {
	// Address is the address where callers connect, as host:port.
	Address string `split_words:"true" default:":9449"`
	// Callers are patterns of the SPIFFE IDs of permitted callers. They apply only if this program has a certificate.
	Callers []string `default:"spiffe://function-runner/gateway,spiffe://function-runner/pod-manager"`
	// DefaultImagePrefix is the prefix of image names without a slash.
	DefaultImagePrefix string `split_words:"true" default:"ghcr.io/kptdev/krm-functions-catalog"`
	// Platform lists the platforms to choose from in multi-platform images, as os/architecture[/variant], separated by
	// commas, in order of preference. Empty means linux on this machine's architecture.
	Platform string `split_words:"true"`

	// AuthSecretPath is a docker configuration file with credentials, which takes precedence over docker's own file.
	// Changes take effect without a restart.
	AuthSecretPath string `split_words:"true"`
	// TLSSecretPath is a directory with certificates for all registries. The authorities in `ca.crt` or `ca.pem` are
	// trusted in addition to the system's authorities. `tls.crt` with `tls.key` is the client certificate for registries
	// that require one. Changes take effect without a restart.
	TLSSecretPath string `split_words:"true"`
	// RegistryTLSPaths are directories with certificates for single registries, as host=directory. For these registries,
	// they replace TLSSecretPath.
	RegistryTLSPaths Pairs `split_words:"true"`
	// InsecureRegistries are the registries with permission for plain HTTP, as host or host:port. A registry at a local
	// address, such as loopback, must be listed here, in RegistryTLSPaths, in InternalRegistries or as a mirror.
	InsecureRegistries []string `split_words:"true"`
	// InternalRegistries are the registries that may be at private or local addresses, as host or host:port. Mirrors and
	// the registries in InsecureRegistries and RegistryTLSPaths always have this permission. "*" permits private addresses
	// for every registry, and "none" permits no further registry. If no registry answers at the private address of an
	// unlisted host, only the log contains the cause. Callers do not receive it, because it could help them to find open
	// ports.
	InternalRegistries []string `split_words:"true" default:"*"`
	// Mirrors are mirrors to try before a registry, as registry=host/prefix. The key may also be a prefix of repositories,
	// such as gcr.io/kpt-fn. Mirrors of the longest prefix are tried first, and mirrors of the same prefix in order.
	Mirrors Pairs `split_words:"true"`

	// CacheTagTTL is the lifetime of a cached answer about a tag. Answers in use are refreshed at half of their lifetime.
	// If the registry is unavailable, slow or limits requests, an expired answer is used until it is an hour old.
	CacheTagTTL time.Duration `split_words:"true" default:"5m"`
	// CacheFailureTTL is the lifetime of a cached failure. Zero means 10 seconds.
	CacheFailureTTL time.Duration `ignored:"true"`
}

const (
	// cacheBytes is the maximum size of the cache of registry answers, in bytes. The memory limit of the image-resolver's
	// pod is four times this size.
	cacheBytes = 64 << 20
	// cacheStaleTTL is the maximum age of a cached answer about a tag. Expired answers are used while the registry is
	// unavailable, limits its requests, or needs more than two seconds.
	cacheStaleTTL = time.Hour
	// cacheFailureTTL is the lifetime of a cached failure if CacheFailureTTL is zero.
	cacheFailureTTL = 10 * time.Second
)

// Pairs is a setting of the form "key=value,key=value", such as mirrors. A repeated key has several values.
type Pairs map[string][]string

// Decode parses the text of an environment variable.
func (p *Pairs) Decode(s string) error {
	out := make(Pairs)
	for _, item := range config.SplitList(s) {
		key, value, _ := strings.Cut(item, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "" || value == "" {
			return fmt.Errorf("%q is not of the form key=value", item)
		}
		out[key] = append(out[key], value)
	}
	*p = out
	return nil
}

// Validate checks the settings.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Address != "", "Address", c.Address, "host:port")
	_, idErr := mtls.ParsePatterns(c.Callers)
	checks.That(idErr == nil, "Callers", strings.Join(c.Callers, ","), mtls.IDsWanted)
	checks.That(imagename.IsPrefix(c.DefaultImagePrefix), "DefaultImagePrefix", c.DefaultImagePrefix,
		imagename.PrefixWanted)
	_, err := c.preferredPlatforms()
	checks.That(err == nil, "Platform", c.Platform, "os/architecture or os/architecture/variant, or several, with commas")
	checkHosts(&checks, "InsecureRegistries", c.InsecureRegistries)
	checkHosts(&checks, "InternalRegistries", c.InternalRegistries)
	checkHosts(&checks, "RegistryTLSPaths", slices.Sorted(maps.Keys(c.RegistryTLSPaths)))
	for _, registry := range slices.Sorted(maps.Keys(c.Mirrors)) {
		for _, name := range append([]string{registry}, c.Mirrors[registry]...) {
			checks.That(!strings.Contains(name, "://") && !strings.Contains(name, " "), "Mirrors", name,
				"registry=host/prefix, without a scheme")
		}
	}
	directories := make(map[string][]string)
	for _, host := range slices.Sorted(maps.Keys(c.RegistryTLSPaths)) {
		name := imagename.CanonicalRegistry(host)
		directories[name] = append(directories[name], c.RegistryTLSPaths[host]...)
		checks.That(len(directories[name]) == 1, "RegistryTLSPaths", strings.Join(directories[name], ","),
			"one directory for "+name)
	}
	checks.That(c.CacheTagTTL > 0, "CacheTagTTL", c.CacheTagTTL, "more than zero")
	return checks.Err()
}

// checkHosts reports each item of a setting that cannot be a registry's host, because the item would have no effect.
func checkHosts(checks *config.Checks, field string, items []string) {
	for _, item := range items {
		checks.That(!strings.ContainsAny(item, "/ "), field, item, "host or host:port, without a scheme or a path")
	}
}

// preferredPlatforms returns the platforms to choose from in multi-platform images, in order of preference.
func (c *Config) preferredPlatforms() (oci.Platforms, error) {
	if c.Platform == "" {
		return oci.Platforms{{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	return oci.ParsePlatforms(c.Platform)
}

func (c *Config) tagLifetime() cache.Lifetime {
	return cache.Lifetime{TTL: c.CacheTagTTL, Stale: cacheStaleTTL, Failure: cmp.Or(c.CacheFailureTTL, cacheFailureTTL)}
}
