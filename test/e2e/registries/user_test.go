// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// user is a user of the registries, besides the bed's own, which other tests use at the same time.
type user struct{ name, password string }

// passwords guards changes of the file.
var passwords sync.Mutex

// newUser adds a user to the registries until the test ends.
func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{name: strings.ToLower(rand.Text())}
	u.rotate(t)
	t.Cleanup(func() { u.write(t, "") })
	return u
}

// rotate changes the user's password.
func (u *user) rotate(t *testing.T) {
	t.Helper()
	u.password = rand.Text()
	hash, err := bcrypt.GenerateFromPassword([]byte(u.password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	u.write(t, string(hash))
}

// write replaces the user's line of the file; without a hash it removes the line. Registries never
// read half a file.
func (u *user) write(t *testing.T, hash string) {
	t.Helper()
	passwords.Lock()
	defer passwords.Unlock()
	path := s.Registry(t, "private").PasswordFile
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, u.name+":") {
			lines.WriteString(line)
		}
	}
	if hash != "" {
		fmt.Fprintf(&lines, "%s:%s\n", u.name, hash)
	}
	next := path + ".new"
	if err := os.WriteFile(next, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// dockerConfig returns a docker configuration with the user's password for some registries.
func (u *user) dockerConfig(t *testing.T, hosts ...string) []byte {
	t.Helper()
	auths := map[string]map[string]string{}
	for _, host := range hosts {
		auths[host] = map[string]string{"username": u.name, "password": u.password}
	}
	content, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
