// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package bed_test

import (
	"encoding/json"
	"testing"
)

// dockerConfig returns a Docker configuration with credentials for a registry, and the same ones
// for further registries.
func dockerConfig(t *testing.T, host, user, password string, further ...string) []byte {
	t.Helper()
	type credentials struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	auths := map[string]credentials{}
	for _, h := range append(further, host) {
		auths[h] = credentials{Username: user, Password: password}
	}
	content, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
