// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// FuzzParse reads docker configurations: nothing makes it panic, and a registry
// only ever gets what is kept under its own name.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}}`), "docker.io/library/busybox")
	f.Add([]byte(`{"auths":{"r.io/a/b":{"username":"u","password":"p"}},"credsStore":"s"}`), "r.io/a/b/c")
	f.Add([]byte(`{"credHelpers":{"r.io:5000":"h"},"credsStore":"s"}`), "r.io:5000/a")
	f.Add([]byte(`{"auths":{"http://[::1]:5000/v2/":{"identitytoken":"t"}}}`), "[::1]:5000/a")
	f.Add([]byte(`{"auths":null}`), "r.io")
	f.Fuzz(func(t *testing.T, content []byte, repository string) {
		c, err := parseConfig(content)
		if err != nil {
			return
		}
		helper, server, inline := c.findCredentials(repository)
		if helper == "" && inline.Username == "" {
			return
		}
		host, _, _ := strings.Cut(repository, "/")
		if kept := scopeOf(server); kept != imagename.CanonicalRegistry(host) &&
			!strings.HasPrefix(kept, imagename.CanonicalRegistry(host)+"/") {
			t.Errorf("%q gets the credentials of %q", repository, server)
		}
	})
}
