// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// inventedImages evaluates 200 images that do not exist, and then an existing image. The metrics contain only a limited
// number of image labels. The invented images must not use them up: the existing image must get its own label.
var inventedImages = Attack{
	Name: "200 invented images", Programs: []string{system.FunctionRunner, system.Gateway}, Short: gateway,
	Run: func(ctx context.Context, t *Target) error {
		_ = runAll(5, func(caller int) error {
			for i := range 40 {
				t.inventImage(ctx, fmt.Sprintf("invented.test/fns/invented-%d-%d:v1", caller, i))
			}
			return nil
		})
		if _, err := t.evaluate(ctx, system.Hostile, List("", "", 0)); err != nil {
			return fmt.Errorf("evaluate an image that exists: %w", err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.Metrics+"/metrics", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("read metrics: %w", err)
		}
		defer func() { _ = resp.Body.Close() }()
		metrics, err := io.ReadAll(resp.Body)
		if err != nil {
			return fmt.Errorf("read metrics: %w", err)
		}
		// Search for the label of the existing image. This label is the last part of the image's name.
		if label := path.Base(system.Hostile); !strings.Contains(string(metrics), strconv.Quote(label)) {
			return fmt.Errorf("after 200 invented images metrics have no label %s", label)
		}
		return nil
	},
}

// inventTimeout is the timeout for evaluating an image that does not exist. Without this timeout, function-runner would
// wait for a pod that runs the image. The pod never starts, because the attack runs without Kubernetes.
const inventTimeout = 500 * time.Millisecond

// inventImage tries to evaluate an image that does not exist.
func (t *Target) inventImage(ctx context.Context, image string) {
	ctx, cancel := context.WithTimeout(ctx, inventTimeout)
	defer cancel()
	_, _ = t.evaluate(ctx, image, List("", "", 0))
}
