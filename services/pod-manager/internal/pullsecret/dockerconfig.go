// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// dockerConfig contains the credentials in a docker configuration file (config.json). The pull secret has the same
// format, but kubelets read only the field Auth of each login.
type dockerConfig struct {
	Auths       map[string]login  `json:"auths"`
	CredHelpers map[string]string `json:"credHelpers,omitempty"`
	CredsStore  string            `json:"credsStore,omitempty"`
}

// login contains the credentials for a registry in a docker configuration file.
type login struct {
	Auth          string `json:"auth,omitempty"`
	Username      string `json:"username,omitempty"`
	Password      string `json:"password,omitempty"`
	IdentityToken string `json:"identitytoken,omitempty"`
	RegistryToken string `json:"registrytoken,omitempty"`
}

// Parse converts a docker configuration file to the content of the pull secret. It copies only user names and
// passwords, because kubelets cannot use other credentials. Equal credentials result in equal content. Warnings name
// the registries with other kinds of credentials. Neither warnings nor errors contain credentials.
func Parse(content []byte) (pullConfig []byte, warnings []string, err error) {
	var file dockerConfig
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, nil, errors.New("it is not a docker configuration: " + describeSyntaxError(err))
	}
	out := dockerConfig{Auths: make(map[string]login)}
	for _, registry := range slices.Sorted(maps.Keys(file.Auths)) {
		auth, problem := file.Auths[registry].basicAuth()
		if problem != "" {
			warnings = append(warnings, registry+": "+problem)
		}
		if auth != "" {
			out.Auths[registry] = login{Auth: auth}
		}
	}
	warnings = append(warnings, file.warnOfHelpers(out)...)
	pullConfig, err = json.Marshal(out)
	return pullConfig, warnings, err
}

// describeSyntaxError describes an error of encoding/json without its text, because the text may contain credentials.
func describeSyntaxError(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(wrong.Value, " ")
		return strings.TrimSuffix("it has "+kind+" in the wrong place, "+wrong.Field, ", ")
	}
	return "it is not valid JSON"
}

// warnOfHelpers returns a warning for each registry whose credentials come from a credential helper program,
// because kubelets do not run these programs.
func (f dockerConfig) warnOfHelpers(out dockerConfig) []string {
	const remedy = "kubelets do not run docker's credential helpers: give the nodes a credential provider for it, " +
		"or put a user and a password into the file"
	var warnings []string
	for _, registry := range slices.Sorted(maps.Keys(f.CredHelpers)) {
		if _, ok := out.Auths[registry]; !ok {
			warnings = append(warnings, registry+": "+remedy)
		}
	}
	if f.CredsStore != "" {
		warnings = append(warnings, "credsStore: "+remedy)
	}
	return warnings
}

// basicAuth returns the login as credentials of HTTP basic authentication, or the problem that prevents this. Both
// results are empty for an empty login, which docker writes if it keeps the credentials in a credential store.
func (l login) basicAuth() (auth, problem string) {
	user, password := l.Username, l.Password
	if l.Auth != "" {
		var ok bool
		if user, password, ok = decodeAuth(l.Auth); !ok {
			return "", `"auth" is not the base64 of user:password`
		}
	}
	switch {
	case password == "" && (l.IdentityToken != "" || l.RegistryToken != ""): // docker may also store a user name
		return "", "kubelets cannot use tokens: put a user and a password into the file"
	case user != "" || password != "":
		return base64.StdEncoding.EncodeToString([]byte(user + ":" + password)), ""
	default:
		return "", ""
	}
}

// decodeAuth decodes the field "auth" into the user and the password, in the same way as docker.
func decodeAuth(auth string) (user, password string, ok bool) {
	text, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", "", false
	}
	user, password, ok = strings.Cut(string(text), ":")
	return user, strings.Trim(password, "\x00"), ok && user != ""
}
