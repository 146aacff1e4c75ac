// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// Revision returns a hash of a cluster's configuration files, without the versions of the components. If the hash
// differs from the revision of a running cluster, `cluster up` replaces the cluster.
func Revision() (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(Components(layout.Layout{}, Programs{})); err != nil {
		return "", fmt.Errorf("identify the configuration: %w", err)
	}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		fmt.Fprintf(sum, "%q %q", path, content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("identify the configuration: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}
