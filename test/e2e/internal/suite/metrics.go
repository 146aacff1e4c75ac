// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metrics returns the metrics that the program in a pod serves. host is the pod's address.
func Metrics(ctx context.Context, host string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+":9464/metrics", nil)
	if err != nil {
		return "", err
	}
	request.Close = true // do not keep the connection open: tests count connections
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("read metrics: %s answers %s: %s", host, response.Status, page))
	}
	return string(page), err
}

// Retries returns the number of times that the gateway in a pod has retried an evaluation with a new lease. host is the
// pod's address. A retry is not always a defect: a function pod on a busy machine may accept a connection too late.
func Retries(ctx context.Context, t testing.TB, host string) int64 {
	t.Helper()
	page, err := Metrics(ctx, host)
	if err != nil {
		t.Fatal(err)
	}
	value, _ := Metric(t, page, "fn_retries_total") // 0 if the metric is missing, because it exists only after a retry
	return int64(value)
}

// Metric returns the value of a metric without labels, from a program's metrics. It returns false if the metric is
// missing.
func Metric(t testing.TB, metrics, name string) (float64, bool) {
	t.Helper()
	for line := range strings.Lines(metrics) {
		number, ok := strings.CutPrefix(line, name+" ")
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil {
			t.Fatalf("metric %s: %v", name, err)
		}
		return value, true
	}
	return 0, false
}
