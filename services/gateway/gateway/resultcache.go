// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

// ResultCacheConfig is the settings of the result cache.
type ResultCacheConfig struct {
	// Images are patterns of the repositories of images whose results are remembered: pure functions, whose
	// output depends on nothing but their image and their input. Without a pattern nothing is remembered.
	Images []string
	// MaxBytes bounds what is remembered.
	MaxBytes int64 `split_words:"true" default:"33554432"`
}

// check adds the problems of the settings.
func (c ResultCacheConfig) check(checks *config.Checks) {
	_, err := imagename.ParsePatterns(c.Images)
	checks.That(err == nil, "ResultCache.Images", strings.Join(c.Images, ","),
		"patterns of repositories, such as ghcr.io/example/fn-*")
	checks.That(len(c.Images) == 0 || c.MaxBytes > 0, "ResultCache.MaxBytes", c.MaxBytes, "1 or more")
}

// remembering returns a function that puts the result cache, if there is one, before an evaluator. Local
// binaries have none: nothing is known of them but a path.
func remembering(
	cfg Config, services Services, frame program.Frame,
) (func(evaluation.Evaluator) evaluation.Evaluator, error) {
	if len(cfg.ResultCache.Images) == 0 {
		return func(e evaluation.Evaluator) evaluation.Evaluator { return e }, nil
	}
	images, err := imagename.ParsePatterns(cfg.ResultCache.Images)
	if err != nil {
		return nil, err
	}
	network, err := imagename.ParsePatterns(cfg.FunctionNetwork)
	if err != nil {
		return nil, err
	}
	digests := services.digests
	if digests == nil && services.Digests != nil {
		digests = resultcache.Ask(services.Digests)
	}
	cache, err := resultcache.New(resultcache.Config{
		Images: images, Except: network, MaxBytes: cfg.ResultCache.MaxBytes, Digests: digests,
		Meters: frame.Telemetry.Meters,
	})
	if err != nil {
		return nil, err
	}
	return cache.Wrap, nil
}
