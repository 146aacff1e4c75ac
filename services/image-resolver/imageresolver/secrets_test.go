// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// tokensBy is a registry that wants tokens, of realm on itself, with what its token
// server answers.
func tokensBy(realm string, answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			switch {
			case !strings.HasPrefix(req.URL.Path, "/v2/"):
				answer(w, req)
			case req.Header.Get("Authorization") == "":
				w.Header().Set("WWW-Authenticate", `Bearer service="test",realm="`+fmt.Sprintf(realm, req.Host)+`"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, req)
			}
		})
	}
}

// say answers with a text, in which %s is what came as Authorization.
func say(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "%s", req.Header.Get("Authorization")))
	}
}

// lead redirects requests for manifests.
func lead(to string) func(http.Handler) http.Handler {
	return testregistry.On("/manifests/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
		w.Header().Set("Location", strings.ReplaceAll(to, "HOST", req.Host))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
}

// TestNothingSecretIsSaid has registries and token servers that are careless, or make
// mistakes, and looks at all that is said of them.
func TestNothingSecretIsSaid(t *testing.T) {
	const realm = "http://%s/token"
	token := func(status int, text string) func(http.Handler) http.Handler {
		return tokensBy(realm, say(status, text))
	}
	tests := map[string]struct {
		reason   string
		registry func(http.Handler) http.Handler
		says     string
	}{
		"token, cut off": {"what does not parse may be a token", token(200, `{"token":"`+password), "and not with a token"},
		"token, elsewhere": {
			"it has an unusual name", token(200, `{"result":{"jwt":"`+password+`"}}`), "and not with a token",
		},
		"token, no text": {"it is of another type", token(200, `{"token":{"value":"`+password+`"}}`), "and not with a token"},
		"token, plain":   {"it stands alone", token(200, password), "and not with a token"},
		"token, behind a redirect": {
			"it is a token there too",
			tokensBy(realm, func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/token" {
					http.Redirect(w, req, "/elsewhere?sig="+password, http.StatusFound)
					return
				}
				say(200, `{"result":"`+password+`"}`)(w, req)
			}), "and not with a token",
		},
		"token, refused": {
			"it was good for nothing", tokensBy(realm, say(200, `{"token":"`+password+`"}`)), "NAME_UNKNOWN",
		},
		"header, in a text": {"servers repeat what they get", token(401, "no good: %s"), "no good: "},
		"header, in JSON": {
			"servers repeat what they get", token(403, `{"details":"no good","got":"%s"}`), "details no good",
		},
		"header, in their format": {
			"servers repeat what they get",
			token(403, `{"errors":[{"code":"DENIED","message":"no","detail":{"headers":["%s"]}}]}`), "DENIED: no",
		},
		"header, in a page":  {"proxies repeat what they get", token(503, "<html><title>Down</title><p>%s"), "Down"},
		"header, at the end": {"half of it is too much", token(503, "Down "+strings.Repeat("<!-- -->", 5000)+"%s"), "Down"},
		"realm with a password": {
			"URLs have user parts", tokensBy("http://user:"+password+"@%s/token", say(404, "no such page")), "no such page",
		},
		"realm with a query": {
			"URLs have queries", tokensBy("http://%s/token?key="+password, say(404, "no such page")), "no such page",
		},
		"realm of no use":      {"URLs have user parts", tokensBy("ftp://user:"+password+"@%s/token", say(404, "")), "ftp"},
		"signature":            {"redirects are signed", lead("/signed?signature=" + password), "404"},
		"signature, malformed": {"it is quoted then", lead("/signed%zz?signature=" + password), "Location"},
		"redirect with password": {
			"URLs have user parts", lead("http://user:" + password + "@HOST/v2/signed?" + password + "=1"), "404",
		},
		"redirect with no port": {
			"URLs have user parts", lead("http://user:" + password + "@HOST:port/?a=" + password), "Location",
		},
		"redirect to a secret": {
			"hosts are said, queries are not", lead("https://127.0.0.1:1/?a=" + html.EscapeString("&"+password)),
			"connection refused",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := private(password)(t)
			s.registry = testregistry.Start(t, nil, tc.registry)
			s.config.InsecureRegistries = []string{s.registry.Host}
			dockerConfig(t, s.config.AuthSecretPath, s.registry.Host, "user", password)
			tel, scrape := scrapetest.New(t)
			said := &traces{spans: tracetest.NewInMemoryExporter()}
			tel.Log = said.logger()
			tel.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(said.spans))
			_, err := resolve(t, startWith(t, s.config, tel), s.registry.Host+"/fn:v1")
			if err == nil {
				t.Fatalf("no error: %s", tc.reason)
			}
			expectText(t, err, tc.says)
			expectNoSecret(t, said.all())
			expectNoSecret(t, scrape())
			if half := password[:len(password)/2]; strings.Contains(err.Error(), half) {
				t.Errorf("half of the secret is in %q: %s", err, tc.reason)
			}
		})
	}
}

// TestPagesAreNotQuoted has proxies that answer for browsers.
func TestPagesAreNotQuoted(t *testing.T) {
	page := "<!DOCTYPE html><html><head><title>Sign in &amp; go on</title><style>" + strings.Repeat("p{} ", 1000) +
		"</style><script>var x = 1;</script></head><body><h1>Company  proxy</h1>" +
		strings.Repeat("<p>Lorem ipsum</p>", 5000) + "</body></html>"
	tests := map[string]struct {
		reason       string
		status       int
		content, say string
		headers      []string
	}{
		"page": {
			"its title and a few words", 502, page, "502 Bad Gateway: Sign in & go on Company proxy Lorem ipsum", nil,
		},
		"page in place": {"of what was asked for", 200, page, `it is a web page: "Sign in & go on Company proxy`, nil},
		"page, other type": {
			"it looks like one", 403, page, "403 Forbidden: Sign in & go on Company proxy",
			[]string{"Content-Type", "application/json"},
		},
		"a lot of text": {
			"the beginning of it", 403, strings.Repeat("blocked by firewall\n", 50_000),
			"403 Forbidden: blocked by firewall blocked", nil,
		},
		"binary": {"what can be read", 500, "\x00\xff\x1b[31mno\r\n", "500 Internal Server Error: ? [31mno", nil},
		"JSON of others": {
			"its texts", 403, `{"message":"blocked","documentation_url":"https://docs.example"}`,
			"message blocked documentation_url https://docs.example", nil,
		},
		"errors": {
			"registries' own words", 403, `{"errors":[{"code":"DENIED","message":"` + strings.Repeat("no ", 10_000) + `"}]}`,
			"DENIED: no no", nil,
		},
		"many errors": {
			"a few of them", 403, `{"errors":[` + strings.Repeat(`{"code":"DENIED","message":"no"},`, 500) + `{}]}`,
			"DENIED: no; DENIED: no", nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(answer("/manifests/", tc.status, tc.content, tc.headers...))(t)
			r, _ := start(t, s.config)
			_, err := resolve(t, r, s.registry.Host+"/fn:v1")
			if err == nil {
				t.Fatal("no error")
			}
			expectText(t, err, tc.say)
			if strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "{}") || len(err.Error()) > 1500 {
				t.Errorf("%q is not short, and readable: %s", err, tc.reason)
			}
		})
	}
}
