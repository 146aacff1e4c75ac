// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Bounds of authorities.
const (
	// MaxAuthorities is how many certificates of authorities a signer may have.
	MaxAuthorities = 10
	// MaxCertificateBytes is how large a certificate may be in DER.
	MaxCertificateBytes = 4 << 10
)

// Notation is a signer with certificates of authorities, as notation has them.
type Notation struct {
	// Authorities are the certificates of authorities that are trusted, in DER.
	Authorities [][]byte
	// Identities are subjects of certificates in the form of RFC 4514, such as "C=US, ST=WA, O=example.com", of which
	// each may sign. A certificate may have more attributes than that.
	Identities []string
}

// ParseAuthorities reads the certificates in a text in PEM, and returns them in DER.
func ParseAuthorities(text []byte) ([][]byte, error) {
	var all [][]byte
	block, rest := pem.Decode(text)
	for ; block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it has a %s: give a CERTIFICATE in PEM", block.Type)
		}
		all = append(all, block.Bytes)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it has text that is not a CERTIFICATE in PEM")
	}
	return all, nil
}

// Check returns the first problem of a signer.
func (n *Notation) Check() error {
	if err := checkCount(len(n.Identities)); err != nil {
		return err
	}
	for i, subject := range n.Identities {
		if err := checkSubject(subject); err != nil {
			return fmt.Errorf("identities[%d]: %w", i, err)
		}
	}
	if len(n.Authorities) == 0 || len(n.Authorities) > MaxAuthorities {
		return fmt.Errorf("it has %d certificates of authorities: it has to have 1 to %d",
			len(n.Authorities), MaxAuthorities)
	}
	_, err := n.Certificates()
	return err
}

// Bytes returns how large what is trusted of the signer is.
func (n *Notation) Bytes() int {
	total := 0
	for _, der := range n.Authorities {
		total += len(der)
	}
	for _, subject := range n.Identities {
		total += len(subject)
	}
	return total
}

// Certificates returns the certificates of the authorities.
func (n *Notation) Certificates() ([]*x509.Certificate, error) {
	certificates := make([]*x509.Certificate, len(n.Authorities))
	for i, der := range n.Authorities {
		if len(der) > MaxCertificateBytes {
			return nil, fmt.Errorf("the certificate of an authority has %d bytes, and may have up to %d",
				len(der), MaxCertificateBytes)
		}
		var err error
		if certificates[i], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("read the certificate of an authority: %w", err)
		}
		if !certificates[i].IsCA {
			return nil, fmt.Errorf("the certificate of %.200s is not that of an authority", certificates[i].Subject)
		}
	}
	return certificates, nil
}

// checkSubject rejects a subject that notation does not accept: it needs a country, a state and an organization,
// each attribute once, and neither multi-valued attributes nor values in hexadecimal.
func checkSubject(text string) error {
	if isLong(text) {
		return fmt.Errorf("it has %d bytes, and may have up to %d", len(text), MaxIdentityBytes)
	}
	seen := map[string]bool{}
	for _, part := range splitSubject(text) {
		name, value, ok := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if name == "S" {
			name = "ST"
		}
		if !ok || name == "" || value == "" || value[0] == '#' || seen[name] {
			return fmt.Errorf("%q is not a subject: write it as C=US, ST=WA, O=example.com, with each attribute once", text)
		}
		seen[name] = true
	}
	if !seen["C"] || !seen["ST"] || !seen["O"] {
		return fmt.Errorf("%q is not a subject with the attributes C, ST and O, each written as O=example.com", text)
	}
	return nil
}

// splitSubject splits a subject at its commas, but for escaped ones, which are in values. It returns nothing for a
// subject with several attributes in one part, or other separators.
func splitSubject(text string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '+', ';', '"':
			return nil
		case ',':
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}
