// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// RegistryUser is the user name at the registries that require a password.
const RegistryUser = "function-runner"

// Secrets are a cluster's tokens and passwords, all derived from the same key.
type Secrets struct {
	key []byte
}

// NewSecrets returns new random secrets.
func NewSecrets() Secrets {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return Secrets{key: key}
}

// Token returns the token of a user of the API.
func (s Secrets) Token(user string) string { return s.derive("token " + user) }

// RegistryPassword returns the password of RegistryUser.
func (s Secrets) RegistryPassword() string { return s.derive("registry password") }

// registrySession returns the key with which registries sign upload sessions.
func (s Secrets) registrySession() string { return s.derive("registry session") }

func (s Secrets) derive(purpose string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(purpose))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}
