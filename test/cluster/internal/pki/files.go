package pki

import (
	"fmt"
	"os"
	"path/filepath"
)

// Write keeps the pair as NAME.crt and NAME.key in dir; the key is readable to
// its owner only.
func (p Pair) Write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o644); err != nil {
		return fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return fmt.Errorf("writing the key %s: %w", name, err)
	}
	return nil
}
