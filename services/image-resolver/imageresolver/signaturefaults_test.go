// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// endless answers with a body that does not end.
func endless(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	for {
		if _, err := io.WriteString(w, `{"layers":[                                                      `); err != nil {
			return
		}
	}
}

// TestRegistriesThatFailDuringVerification reports who signed in no case.
func TestRegistriesThatFailDuringVerification(t *testing.T) {
	status := func(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			testregistry.Refuse(w, status, "UNKNOWN", "not today")
		}
	}
	tests := map[string]struct {
		path    string
		handler func(http.ResponseWriter, *http.Request, http.Handler)
		want    string
		says    string
	}{
		"the registry fails":         {".sig", status(http.StatusInternalServerError), "error unavailable", "not today"},
		"it limits requests":         {".sig", status(http.StatusTooManyRequests), "error exhausted", "limits how often"},
		"it refuses":                 {".sig", status(http.StatusForbidden), "error precondition", "credentials"},
		"its list fails":             {"/referrers/", status(http.StatusBadGateway), "error unavailable", "get referrers"},
		"it has no list":             {"/referrers/", status(http.StatusNotFound), "signed by release", ""},
		"its list is not made":       {"/referrers/", status(http.StatusNotImplemented), "signed by release", ""},
		"an endless manifest":        {".sig", endless, "error precondition", "larger than 4 MiB"},
		"an endless list":            {"/referrers/", endless, "error precondition", "larger than 4 MiB"},
		"a list without end":         {"/referrers/", pages, "error precondition", "more than 5 pages"},
		"many artifacts on pages":    {"/referrers/", crowded, "error precondition", "60 artifacts with signatures"},
		"a payload that has changed": {"/blobs/" + payloadOf, nil, "error precondition", "tampers with it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var payload string
			handler := tc.handler
			if handler == nil {
				handler = func(w http.ResponseWriter, req *http.Request, next http.Handler) {
					if strings.HasSuffix(req.URL.Path, payload) {
						_, _ = io.WriteString(w, "{}")
						return
					}
					next.ServeHTTP(w, req)
				}
			}
			s := newSigning(t, nil, testregistry.On(strings.TrimSuffix(tc.path, payloadOf), handler))
			digest := digestOf(t, s.Push(t, "fn:v1", function))
			signed := testregistry.Sign(t, digest, s.release)
			payload = testregistry.Digest([]byte(signed[0].Payload))
			s.PushSignatures(t, "fn", digest, signed)
			got, err := s.verify(t, "fn:v1")
			if verdict(got, err) != tc.want {
				t.Fatalf("%s, %v, want %s", verdict(got, err), err, tc.want)
			}
			if err != nil {
				expectText(t, err, "verify the signatures of "+s.Host+"/fn@"+digest, tc.says)
			}
		})
	}
}

// payloadOf stands for the digest of the payload.
const payloadOf = "PAYLOAD"

// pages answers with a page that another one follows.
func pages(w http.ResponseWriter, req *http.Request, _ http.Handler) {
	w.Header().Set("Link", fmt.Sprintf(`<%s?n=1>; rel="next"`, req.URL.Path))
	_, _ = io.WriteString(w, `{"manifests":[]}`)
}

// crowded answers with a page of 30 artifacts, which another one follows.
func crowded(w http.ResponseWriter, req *http.Request, _ http.Handler) {
	w.Header().Set("Link", fmt.Sprintf(`<%s?n=1>; rel="next"`, req.URL.Path))
	one := fmt.Sprintf(`{"artifactType":"application/vnd.dev.cosign.artifact.sig.v1+json","digest":"sha256:%064d"}`, 1)
	_, _ = io.WriteString(w, `{"manifests":[`+strings.Repeat(one+",", 29)+one+`]}`)
}

// TestFaultsBesideASignature has a signature at cosign's tag, and one in an artifact that the registry does not
// return: the first one counts, unless the registry may return the other one later.
func TestFaultsBesideASignature(t *testing.T) {
	gone := func(w http.ResponseWriter, req *http.Request, _ http.Handler) { http.NotFound(w, req) }
	status := func(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			testregistry.Refuse(w, status, "UNKNOWN", "not today")
		}
	}
	garbage := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, "{}") }
	tests := map[string]struct {
		path    string
		handler func(http.ResponseWriter, *http.Request, http.Handler)
		want    string
	}{
		"another manifest":     {"/manifests/", garbage, "signed by release, unread the registry answered with"},
		"an endless manifest":  {"/manifests/", endless, "signed by release, unread registry"},
		"no manifest":          {"/manifests/", gone, "signed by release"},
		"the registry fails":   {"/manifests/", status(http.StatusServiceUnavailable), "error unavailable"},
		"it limits requests":   {"/manifests/", status(http.StatusTooManyRequests), "error exhausted"},
		"it refuses":           {"/manifests/", status(http.StatusForbidden), "error precondition"},
		"another payload":      {"/blobs/", garbage, "signed by release, unread the registry answered with"},
		"no payload":           {"/blobs/", gone, "signed by release, unread registry"},
		"it fails for payload": {"/blobs/", status(http.StatusBadGateway), "error unavailable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var artifact, payload string
			s := newSigning(t, nil, testregistry.On(tc.path,
				func(w http.ResponseWriter, req *http.Request, next http.Handler) {
					if at := req.URL.Path; strings.HasSuffix(at, artifact) || strings.HasSuffix(at, payload) {
						tc.handler(w, req, next)
						return
					}
					next.ServeHTTP(w, req)
				}))
			digest := digestOf(t, s.Push(t, "fn:v1", function))
			s.PushSignatures(t, "fn", digest, testregistry.Sign(t, digest, s.release))
			signed := testregistry.Sign(t, digest, s.audit)
			signed[0].Payload += " "
			artifact = s.PushReferrer(t, "fn", digest, signed, false)
			payload = testregistry.Digest([]byte(signed[0].Payload))
			got, err := s.verify(t, "fn:v1")
			if words := verdict(got, err); !strings.HasPrefix(words, tc.want) ||
				!strings.Contains(tc.want, "unread") && words != tc.want {
				t.Errorf("%s, %v, want %s", words, err, tc.want)
			}
		})
	}
}
