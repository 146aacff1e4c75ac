// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Bounds of signers by certificates.
const (
	// MaxIdentities is how many identities a signer may have, and MaxIdentityBytes how long each text of one may be.
	MaxIdentities    = 20
	MaxIdentityBytes = 1 << 10
	// MaxTrustedRootBytes is how large a trusted root may be: that of sigstore's public instance has 7 KiB.
	MaxTrustedRootBytes = 64 << 10
)

// trustedRootType is the type of trusted roots, as sigstore calls it.
const trustedRootType = "application/vnd.dev.sigstore.trustedroot+json;version=0.1"

// Keyless is a signer without a key: who it is stands in the certificate of each signature.
type Keyless struct {
	// TrustedRoot is the content of sigstore's trusted_root.json: the authorities of certificates, and the keys of
	// logs.
	TrustedRoot []byte
	// Identities are those of which each may sign.
	Identities []Identity
}

// Identity is whom a certificate has to be for: the subject, or one that a pattern matches, of an issuer.
type Identity struct {
	// Issuer is the OpenID provider that knows the subject, such as https://token.actions.githubusercontent.com.
	Issuer string `yaml:"issuer"`
	// Subject is a URI or an email address.
	Subject string `yaml:"subject"`
	// SubjectPattern is a pattern of subjects: "*" is anything but a slash, and "**" is anything.
	SubjectPattern string `yaml:"subjectPattern"`
}

// Check returns the first problem of a signer. Certificates and keys are verified where signatures are.
func (k *Keyless) Check() error {
	if err := checkCount(len(k.Identities)); err != nil {
		return err
	}
	for i, identity := range k.Identities {
		if err := identity.check(); err != nil {
			return fmt.Errorf("identities[%d]: %w", i, err)
		}
	}
	if err := checkTrustedRoot(k.TrustedRoot); err != nil {
		return fmt.Errorf("the trusted root: %w", err)
	}
	return nil
}

// IdentityBytes returns how large the signer's identities are.
func (k *Keyless) IdentityBytes() int {
	total := 0
	for _, i := range k.Identities {
		total += len(i.Issuer) + len(i.Subject) + len(i.SubjectPattern)
	}
	return total
}

// checkCount rejects a number of identities.
func checkCount(n int) error {
	if n == 0 || n > MaxIdentities {
		return fmt.Errorf("identities has %d entries: it has to have 1 to %d", n, MaxIdentities)
	}
	return nil
}

func (i Identity) check() error {
	switch {
	case i.Issuer == "":
		return errors.New("issuer is empty: name the OpenID provider, such as https://accounts.google.com")
	case (i.Subject == "") == (i.SubjectPattern == ""):
		return errors.New("it has to have either subject or subjectPattern")
	case slices.ContainsFunc([]string{i.Issuer, i.Subject, i.SubjectPattern}, isLong):
		return fmt.Errorf("it has a text of more than %d bytes", MaxIdentityBytes)
	default:
		return nil
	}
}

func isLong(text string) bool { return len(text) > MaxIdentityBytes }

// Matcher returns a function that reports whether a subject of an issuer is one of the signer's identities.
func (k *Keyless) Matcher() (func(issuer, subject string) bool, error) {
	subjects := make([]*regexp.Regexp, len(k.Identities))
	for i, identity := range k.Identities {
		expr := regexp.QuoteMeta(identity.Subject)
		if identity.SubjectPattern != "" {
			expr = regexp.QuoteMeta(identity.SubjectPattern)
			expr = strings.ReplaceAll(expr, `\*\*`, `.*`)
			expr = strings.ReplaceAll(expr, `\*`, `[^/]*`)
		}
		var err error
		if subjects[i], err = regexp.Compile(`(?s)\A` + expr + `\z`); err != nil {
			return nil, fmt.Errorf("identities[%d]: %w", i, err)
		}
	}
	return func(issuer, subject string) bool {
		for i, identity := range k.Identities {
			if identity.Issuer == issuer && subjects[i].MatchString(subject) {
				return true
			}
		}
		return false
	}, nil
}

// trustedRoot is what a trusted root has to have.
type trustedRoot struct {
	Type        string `json:"mediaType"`
	Authorities []struct {
		Chain struct {
			Certificates []struct {
				DER []byte `json:"rawBytes"`
			} `json:"certificates"`
		} `json:"certChain"`
	} `json:"certificateAuthorities"`
	Logs []struct {
		Key struct {
			DER []byte `json:"rawBytes"`
		} `json:"publicKey"`
	} `json:"tlogs"`
}

// checkTrustedRoot rejects what is not a trusted root, such as the half of one. The image-resolver reads all of it.
func checkTrustedRoot(text []byte) error {
	if len(text) > MaxTrustedRootBytes {
		return fmt.Errorf("it has %d bytes, and may have up to %d", len(text), MaxTrustedRootBytes)
	}
	var root trustedRoot
	if err := json.Unmarshal(text, &root); err != nil {
		return fmt.Errorf("it is not the JSON of a trusted_root.json: %w", err)
	}
	switch {
	case root.Type != trustedRootType:
		return fmt.Errorf("its mediaType is %.100q: it has to be %s", root.Type, trustedRootType)
	case len(root.Authorities) == 0:
		return errors.New("it has no certificateAuthorities")
	case len(root.Logs) == 0:
		return errors.New("it has no tlogs: signatures have to be in a log")
	}
	for i, authority := range root.Authorities {
		for _, certificate := range authority.Chain.Certificates {
			if _, err := x509.ParseCertificate(certificate.DER); err != nil {
				return fmt.Errorf("certificateAuthorities[%d]: %w", i, err)
			}
		}
	}
	for i, log := range root.Logs {
		if len(log.Key.DER) == 0 {
			return fmt.Errorf("tlogs[%d] has no publicKey", i)
		}
	}
	return nil
}
