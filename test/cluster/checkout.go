package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
)

// checkout tells apart the copies of the repository that share a cache.
func checkout(root string) string {
	path, err := filepath.Abs(root)
	if err != nil {
		path = root
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(path)))[:12]
}
