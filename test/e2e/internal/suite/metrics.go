// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Metrics returns the metrics that the program in a pod serves. host is the pod's address.
func Metrics(ctx context.Context, host string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+":9464/metrics", nil)
	if err != nil {
		return "", err
	}
	request.Close = true // tests count connections
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
