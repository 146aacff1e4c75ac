// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/cacheserver"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

// ResultCacheConfig is the settings of the result cache.
type ResultCacheConfig struct {
	// Images are patterns of the repositories of images whose results are remembered: pure functions, whose
	// output depends on nothing but their image and their input. Without a pattern nothing is remembered.
	Images []string
	// MaxBytes bounds what is remembered.
	MaxBytes int64 `split_words:"true" default:"33554432"`
	// Server is the URL of a server that gateways share, which speaks the Redis protocol; empty for none.
	Server string
	// KeyFile has the key that they share too, without which the server's values cannot be read or made.
	KeyFile string `split_words:"true"`
	// PasswordFile has the password for the server, if it requires one. It is read for each connection, as CAFile.
	PasswordFile string `split_words:"true"`
	// CAFile has the certificates of the authorities that issue the server's; empty for those of the system.
	CAFile string `split_words:"true"`
	// TTL is how long the server keeps a result.
	TTL time.Duration `default:"24h"`
}

// check adds the problems of the settings.
func (c ResultCacheConfig) check(checks *config.Checks) {
	_, err := imagename.ParsePatterns(c.Images)
	checks.That(err == nil, "ResultCache.Images", strings.Join(c.Images, ","),
		"patterns of repositories, such as ghcr.io/example/fn-*")
	checks.That(len(c.Images) == 0 || c.MaxBytes > 0, "ResultCache.MaxBytes", c.MaxBytes, "1 or more")
	if c.Server == "" {
		return
	}
	_, err = cacheserver.ParseAddress(c.Server)
	checks.That(err == nil, "ResultCache.Server", hidePassword(c.Server), cacheserver.AddressWanted)
	checks.That(c.KeyFile != "", "ResultCache.KeyFile", c.KeyFile, "the path of a file of 32 random bytes, "+
		"the same for all gateways")
	checks.That(len(c.Images) > 0, "ResultCache.Images", "", "the images whose results are shared")
	checks.That(c.TTL >= time.Second, "ResultCache.TTL", c.TTL, "1s or more")
}

// secrets returns the files that no function may read.
func (c ResultCacheConfig) secrets() []string {
	return slices.DeleteFunc([]string{c.KeyFile, c.PasswordFile}, func(path string) bool { return path == "" })
}

// hidePassword returns a URL as errors may show it: without what precedes the host.
func hidePassword(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	at := strings.LastIndex(url, "@")
	if at < 0 {
		return url
	}
	if !ok {
		return "…" + url[at:]
	}
	return scheme + "://…" + rest[strings.LastIndex(rest, "@"):]
}

// newResultCache returns the result cache, nil if there is none, and the tasks that it needs.
func newResultCache(cfg Config, services Services, frame program.Frame) (*resultcache.Cache, []serve.Task, error) {
	if len(cfg.ResultCache.Images) == 0 {
		return nil, nil, nil
	}
	images, err := imagename.ParsePatterns(cfg.ResultCache.Images)
	if err != nil {
		return nil, nil, err
	}
	network, err := imagename.ParsePatterns(cfg.FunctionNetwork)
	if err != nil {
		return nil, nil, err
	}
	digests := services.digests
	if digests == nil && services.Digests != nil {
		digests = resultcache.Ask(services.Digests)
	}
	tier, tasks, err := newTier(cfg, frame)
	if err != nil {
		return nil, nil, err
	}
	cache, err := resultcache.New(resultcache.Config{
		Images: images, Except: network, MaxBytes: cfg.ResultCache.MaxBytes, Digests: digests, Tier: tier,
		Meters: frame.Telemetry.Meters,
	})
	if err != nil {
		return nil, nil, err
	}
	return cache, tasks, nil
}
