// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestPolicyIsRestored(t *testing.T) {
	for _, test := range []struct {
		reason       string
		files        map[string]string
		want         string
		wantNoPolicy bool
	}{
		{"there was none", nil, "", true},
		{"there was one", map[string]string{"policy": "theirs"}, "theirs", false},
		{"a former run was killed", map[string]string{"policy": deny, "saved": "theirs"}, "theirs", false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			dir := t.TempDir()
			path, saved := filepath.Join(dir, "policy"), filepath.Join(dir, "saved")
			for name, content := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			policy, err := newPolicy(path, saved)
			if err != nil {
				t.Fatal(err)
			}
			if during, err := os.ReadFile(path); err != nil || string(during) != deny {
				t.Errorf("during the installation the policy is %q, %v", during, err)
			}
			if err := policy.restore(); err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(path)
			if test.wantNoPolicy != errors.Is(err, fs.ErrNotExist) || string(after) != test.want {
				t.Errorf("afterwards the policy is %q, %v", after, err)
			}
		})
	}
}
