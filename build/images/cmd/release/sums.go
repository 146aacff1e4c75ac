// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return fmt.Errorf("list the files of the release: %w", err)
	}
	var sums bytes.Buffer
	for _, entry := range entries {
		sum, err := hash(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return fmt.Errorf("compute a checksum: %w", err)
		}
		_, _ = fmt.Fprintf(&sums, "%x  %s\n", sum, entry.Name()) // a buffer takes everything
	}
	signed, err := signature.Bytes(sums.Bytes(), r.key)
	if err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&r.key.PublicKey)
	if err != nil {
		return fmt.Errorf("encode the public key: %w", err)
	}
	for name, content := range map[string][]byte{
		"SHA256SUMS":     sums.Bytes(),
		"SHA256SUMS.sig": []byte(signed + "\n"),
		"cosign.pub":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := r.write(name, content); err != nil {
			return err
		}
	}
	return nil
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
