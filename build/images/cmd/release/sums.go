// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// sums writes the checksums of all files, in the form that sha256sum checks, their signature, in the form of
// `cosign sign-blob`, and the public key.
func (r releaser) sums() error {
	sums, err := checksums(r.out)
	if err != nil {
		return err
	}
	signed, err := signature.Bytes(sums, r.key)
	if err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&r.key.PublicKey)
	if err != nil {
		return fmt.Errorf("encode the public key: %w", err)
	}
	for name, content := range map[string][]byte{
		"SHA256SUMS":     sums,
		"SHA256SUMS.sig": []byte(signed + "\n"),
		"cosign.pub":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := r.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// checksums returns the checksums of the files in a directory.
func checksums(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the files of the release: %w", err)
	}
	var sums []byte
	for _, entry := range entries {
		sum, err := hash(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("compute a checksum: %w", err)
		}
		sums = fmt.Appendf(sums, "%x  %s\n", sum, entry.Name())
	}
	return sums, nil
}

func hash(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return nil, err
	}
	return sum.Sum(nil), nil
}

// write writes a file of the release.
func (r releaser) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644) //nolint:gosec // it is published
}
