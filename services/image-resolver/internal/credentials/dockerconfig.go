// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/docker/cli/cli/config/configfile"
	clicredentials "github.com/docker/cli/cli/config/credentials"
	"github.com/docker/cli/cli/config/types"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// hubServer is the name of docker.io in docker's configuration files.
const hubServer = "https://index.docker.io/v1/"

// dockerConfig contains the credentials and the names of credential helpers in a docker configuration file.
type dockerConfig struct {
	// auths contains the credentials in the file itself, by host or host/path.
	auths map[string]types.AuthConfig
	// helpers contains the names of credential helpers, by host or host/path.
	helpers map[string]string
	// store is the credential helper for all registries without an entry in helpers. It may be empty.
	store string
}

// parseConfig parses a docker configuration file. Its errors do not quote the content, which may be secret.
func parseConfig(content []byte) (*dockerConfig, error) {
	file := configfile.New("")
	if err := file.LoadFromReader(bytes.NewReader(content)); err != nil {
		return nil, fmt.Errorf("not a docker configuration: %w", err)
	}
	c := &dockerConfig{
		auths:   make(map[string]types.AuthConfig),
		helpers: make(map[string]string),
		store:   file.CredentialsStore,
	}
	for key, auth := range file.AuthConfigs {
		auth.ServerAddress = ""
		if auth != (types.AuthConfig{}) { // docker writes empty entries if it uses a credential store
			c.auths[scopeOf(key)] = auth
		}
	}
	for key, helper := range file.CredentialHelpers {
		c.helpers[scopeOf(key)] = helper
	}
	return c, nil
}

// scopeOf converts a key of a docker configuration file to the form host or host/path. It removes the scheme and the
// path /v1 or /v2, which old versions of docker added, and replaces each name of docker.io with the canonical name.
func scopeOf(key string) string {
	host := clicredentials.ConvertToHostname(key)
	_, rest, _ := strings.Cut(key, "://")
	if rest == "" {
		rest = key
	}
	_, path, _ := strings.Cut(rest, "/")
	path = strings.Trim(path, "/")
	if path == "v1" || path == "v2" {
		path = ""
	}
	return joinPath(imagename.CanonicalRegistry(host), path)
}

func joinPath(host, path string) string {
	if path == "" {
		return host
	}
	return host + "/" + path
}

// scopesOf returns the configuration keys that match a repository: its full path, all parent paths, and its host.
func scopesOf(repository string) []string {
	host, path, _ := strings.Cut(repository, "/")
	host = imagename.CanonicalRegistry(host)
	var out []string
	for path != "" {
		out = append(out, joinPath(host, path))
		cut := strings.LastIndexByte(path, '/')
		path = path[:max(cut, 0)]
	}
	return append(out, host)
}

// findCredentials returns the credential helper for a repository, and the server name to pass to the helper. If the
// helper returns nothing, callers use inline, the credentials in the file itself. All results may be empty.
func (c *dockerConfig) findCredentials(repository string) (helper, server string, inline types.AuthConfig) {
	candidates := scopesOf(repository)
	for _, key := range candidates {
		auth, ok := c.auths[key]
		name := c.helpers[key]
		if ok || name != "" {
			inline, helper, server = auth, name, key
			break
		}
	}
	if host := candidates[len(candidates)-1]; helper == "" && (server == "" || server == host) {
		helper, server = c.store, host
	}
	if server == imagename.Hub {
		server = hubServer
	}
	return helper, server, inline
}
