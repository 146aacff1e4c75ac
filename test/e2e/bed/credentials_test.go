//go:build e2e

package bed_test

import (
	"encoding/json"
	"testing"
)

// dockerConfig is a Docker configuration with credentials for one registry.
func dockerConfig(t *testing.T, host, user, password string) []byte {
	t.Helper()
	type credentials struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	content, err := json.Marshal(map[string]any{"auths": map[string]credentials{host: {Username: user, Password: password}}})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
