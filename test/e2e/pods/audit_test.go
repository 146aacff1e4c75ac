//go:build e2e

package pods_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// request is what the API server wrote down about a request.
type request struct {
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// requests are what the services asked of the API server since a time.
func (sys *system) requests(t testing.TB, since time.Time) []request {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.Bed.Logs, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	var found []request
	for line := range bytes.Lines(content) {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			continue // the last line may be incomplete
		}
		if r.User.Username == "system:serviceaccount:"+sys.services+":default" && r.Received.After(since) {
			found = append(found, r)
		}
	}
	return found
}
