// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// ReadKey reads an ECDSA private key from a PEM file, as `openssl genpkey` and `openssl ecparam` write it.
func ReadKey(path string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of signatures: %w", err)
	}
	key, err := parseKey(content)
	if err != nil {
		return nil, fmt.Errorf("read the key of signatures in %s: %w: "+
			"make one with openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256", path, err)
	}
	return key, nil
}

func parseKey(content []byte) (*ecdsa.PrivateKey, error) {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "EC PARAMETERS": // before the key, in files of `openssl ecparam`
		case "EC PRIVATE KEY":
			return x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			return parsePKCS8(block.Bytes)
		default:
			return nil, fmt.Errorf("it is a %s, not an unencrypted private key", block.Type)
		}
	}
	return nil, errors.New("it has no key in PEM's form")
}

func parsePKCS8(der []byte) (*ecdsa.PrivateKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it is a %T, not an ECDSA key", key)
	}
	return ec, nil
}

// ReadPublicKey reads the public key of an ECDSA key from a PEM file, as `openssl pkey -pubout` writes it.
func ReadPublicKey(path string) (*ecdsa.PublicKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the public key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("read the public key in %s: it has no key in PEM's form: "+
			"name the cosign.pub of the project", path)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the public key in %s: %w", path, err)
	}
	ec, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("read the public key in %s: it is a %T, not an ECDSA key", path, key)
	}
	return ec, nil
}
