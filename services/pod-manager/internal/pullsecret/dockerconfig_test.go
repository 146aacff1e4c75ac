// SPDX-License-Identifier: Apache-2.0

package pullsecret_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pullsecret"
)

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestParse(t *testing.T) {
	tests := map[string]struct {
		reason string
		file   string
		want   string // "registry user:password …", in order
		warns  string // part of the only warning; none if empty
	}{
		"auth": {
			"what docker login writes", `{"auths":{"r.example":{"auth":"` + encoded("u:p") + `"}}}`, "r.example u:p", "",
		},
		"user": {
			"what kubectl create secret writes, besides auth",
			`{"auths":{"r.example":{"username":"u","password":"p"}}}`, "r.example u:p", "",
		},
		"both": {
			"docker believes auth",
			`{"auths":{"r.example":{"username":"x","password":"y","auth":"` + encoded("u:p:q") + `"}}}`, "r.example u:p:q", "",
		},
		"two": {
			"in the same order each time",
			`{"auths":{"s.example/org":{"auth":"` + encoded("a:b") + `"},` +
				`"https://index.docker.io/v1/":{"auth":"` + encoded("c:d") + `"}}}`,
			"https://index.docker.io/v1/ c:d s.example/org a:b", "",
		},
		"rest": {
			"nothing else is copied",
			`{"auths":{"r.example":{"auth":"` + encoded("u:p") + `","email":"e"}},` +
				`"HttpHeaders":{"X-Meta":"secret"},"proxies":{}}`,
			"r.example u:p", "",
		},
		"empty":          {"docker leaves such ones beside a store", `{"auths":{"r.example":{}}}`, "", ""},
		"no credentials": {"a file may have none yet", `{}`, "", ""},
		"broken auth": {
			"one entry must not spoil the others, as it would in a kubelet",
			`{"auths":{"bad.example":{"auth":"%"},"r.example":{"auth":"` + encoded("u:p") + `"}}}`, "r.example u:p",
			"bad.example",
		},
		"token": {"kubelets ignore it", `{"auths":{"r.example":{"identitytoken":"secret"}}}`, "", "r.example"},
		"login with a token": {
			"docker keeps the user's name beside it, without a password",
			`{"auths":{"r.example":{"auth":"` + encoded("u:") + `","identitytoken":"secret"}}}`, "", "r.example",
		},
		"password and token": {
			"kubelets use the password",
			`{"auths":{"r.example":{"auth":"` + encoded("u:p") + `","identitytoken":"secret"}}}`, "r.example u:p", "",
		},
		"helper": {"kubelets run none", `{"credHelpers":{"r.example":"ecr-login"}}`, "", "r.example"},
		"helper, login": {
			"there is a login for kubelets",
			`{"auths":{"r.example":{"auth":"` + encoded("u:p") + `"}},"credHelpers":{"r.example":"ecr-login"}}`,
			"r.example u:p", "",
		},
		"store": {"kubelets have none", `{"credsStore":"desktop"}`, "", "credsStore"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			content, warnings, err := pullsecret.Parse([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(logins(t, content), " "); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
			switch {
			case tc.warns == "" && len(warnings) > 0:
				t.Errorf("unexpected warnings %q", warnings)
			case tc.warns != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], tc.warns)):
				t.Errorf("warnings are %q, want one of %q: %s", warnings, tc.warns, tc.reason)
			}
			for _, w := range warnings {
				if strings.Contains(w, "secret") {
					t.Errorf("a warning tells what is secret: %s", w)
				}
			}
		})
	}
}

// logins reads what a kubelet would, as "registry user:password".
func logins(t testing.TB, content []byte) []string {
	t.Helper()
	var file struct {
		Auths map[string]struct{ Auth string }
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	var list []string
	for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
		if key, ok := token.(string); ok && file.Auths[key].Auth != "" {
			text, err := base64.StdEncoding.DecodeString(file.Auths[key].Auth)
			if err != nil || !strings.Contains(string(text), ":") {
				t.Errorf("a kubelet refuses %s: %v", content, err)
			}
			list = append(list, key+" "+string(text))
		}
	}
	return list
}

func TestParseRefuses(t *testing.T) {
	for _, file := range []string{"", "secret", `{"auths":"secret"}`, `{"auths":{"r.example":{"password":1234}}}`, `[]`} {
		_, _, err := pullsecret.Parse([]byte(file))
		if err == nil || !strings.Contains(err.Error(), "docker configuration") {
			t.Errorf("%q: %v, want that it is not a docker configuration", file, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "1234")) {
			t.Errorf("the error tells what is secret: %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"auths":{"r.example":{"auth":"dTpw"}}}`, `{"auths":{"":{"username":"u"}}}`,
		`{"auths":null,"credHelpers":{"a":"b"},"credsStore":"c"}`, `{"auths":{"r":{"auth":"OnA="}}}`, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		content, _, err := pullsecret.Parse(file)
		if err != nil {
			return
		}
		logins(t, content)
		again, warnings, err := pullsecret.Parse(content)
		if err != nil || len(warnings) > 0 || string(again) != string(content) {
			t.Errorf("the copy %s is read as %s, %q, %v", content, again, warnings, err)
		}
	})
}
