// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"os"
	"path/filepath"
)

// Write writes NAME.crt and NAME.key to dir. Only the owner can read the key.
func (p Pair) Write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o644); err != nil {
		return fmt.Errorf("write the certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return fmt.Errorf("write the key %s: %w", name, err)
	}
	return nil
}
