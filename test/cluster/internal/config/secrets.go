// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// RegistryUser is the user name for registries that require a password.
const RegistryUser = "function-runner"

// Secrets are the tokens and passwords of a cluster. They are derived from a single key.
type Secrets struct {
	key []byte
}

// NewSecrets returns new random secrets.
func NewSecrets() Secrets {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return Secrets{key: key}
}

// Token returns the token with which a user authenticates to the API server.
func (s Secrets) Token(user string) string { return s.derive("token " + user) }

// RegistryPassword returns the password of RegistryUser.
func (s Secrets) RegistryPassword() string { return s.derive("registry password") }

// registrySession returns the secret with which registries sign the state of an upload.
func (s Secrets) registrySession() string { return s.derive("registry session") }

func (s Secrets) derive(purpose string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(purpose))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}
