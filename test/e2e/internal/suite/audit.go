// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Request is an API request, as recorded in the audit log of the test bed's API server.
type Request struct {
	Verb      string    `json:"verb"`
	URI       string    `json:"requestURI"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	User      struct {
		Username string `json:"username"`
		// Extra contains, for example, the name of the pod that sent the request.
		Extra map[string][]string `json:"extra"`
	} `json:"user"`
	Object struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Pod returns the name of the pod that sent the request. It is empty if the caller is not a pod.
func (r *Request) Pod() string {
	if names := r.User.Extra["authentication.kubernetes.io/pod-name"]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// Requests returns the requests that pods with the given service account have sent to the API server since a time.
func (s *Suite) Requests(t testing.TB, namespace, account string, since time.Time) []Request {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.Bed.Logs, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	var found []Request
	for line := range bytes.Lines(content) {
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			continue // the last line may be incomplete
		}
		if r.User.Username == "system:serviceaccount:"+namespace+":"+account && r.Received.After(since) {
			found = append(found, r)
		}
	}
	return found
}
