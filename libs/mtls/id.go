// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxIDBytes is the maximum length of a SPIFFE ID according to the SPIFFE specification.
const maxIDBytes = 2048

// ID is a SPIFFE ID, such as spiffe://function-runner/gateway. The zero ID means no ID.
type ID struct{ domain, path string }

var (
	validDomain  = regexp.MustCompile(`^[a-z0-9._-]{1,255}$`)
	validSegment = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// ParseID parses a SPIFFE ID. It rejects variant spellings of a valid ID, such as capitals in the trust domain, so
// that equal IDs have equal texts.
func ParseID(text string) (ID, error) {
	rest, ok := strings.CutPrefix(text, "spiffe://")
	domain, path, found := strings.Cut(rest, "/")
	if !ok || len(text) > maxIDBytes || !validDomain.MatchString(domain) {
		return ID{}, fmt.Errorf("%.100q is not a SPIFFE ID, such as spiffe://function-runner/gateway", text)
	}
	if !found {
		return ID{domain: domain}, nil
	}
	for segment := range strings.SplitSeq(path, "/") {
		if !validSegment.MatchString(segment) || segment == "." || segment == ".." {
			return ID{}, fmt.Errorf("%.100q is not a SPIFFE ID: its path has the segment %.100q", text, segment)
		}
	}
	return ID{domain: domain, path: "/" + path}, nil
}

// String returns the ID as a URI, or an empty string for the zero ID.
func (i ID) String() string {
	if i.domain == "" {
		return ""
	}
	return "spiffe://" + i.domain + i.path
}

// URL returns the ID as a URL in the form that x509.Certificate requires.
func (i ID) URL() *url.URL { return &url.URL{Scheme: "spiffe", Host: i.domain, Path: i.path} }

// Sibling returns the ID with another path in the same trust domain, such as spiffe://function-runner/pod-manager
// for spiffe://function-runner/gateway. The path must be valid.
func (i ID) Sibling(path string) ID { return ID{domain: i.domain, path: "/" + path} }

// IDOf returns the SPIFFE ID of a certificate. According to the SPIFFE specification, it must be the only URI in the
// certificate.
func IDOf(cert *x509.Certificate) (ID, error) {
	if len(cert.URIs) != 1 {
		return ID{}, fmt.Errorf("the certificate has %d URIs, want one, a SPIFFE ID", len(cert.URIs))
	}
	return ParseID(cert.URIs[0].String())
}

// Patterns is a list of SPIFFE IDs and prefixes, for example of the callers that a port admits. The pattern
// "spiffe://example/a/*" matches all IDs below spiffe://example/a. An empty list matches no ID.
type Patterns []pattern

type pattern struct {
	id    ID
	below bool
}

// ParsePatterns parses a list of patterns. Its error names all invalid patterns.
func ParsePatterns(list []string) (Patterns, error) {
	patterns, problems := Patterns(nil), []error(nil)
	for _, text := range list {
		beginning, below := strings.CutSuffix(text, "/*")
		id, err := ParseID(beginning)
		patterns, problems = append(patterns, pattern{id, below}), append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return patterns, nil
}

// Match reports whether at least one pattern matches the ID.
func (p Patterns) Match(id ID) bool {
	return id != ID{} && slices.ContainsFunc(p, func(p pattern) bool {
		if p.below {
			return id.domain == p.id.domain && strings.HasPrefix(id.path, p.id.path+"/")
		}
		return id == p.id
	})
}

// String returns the patterns as their author wrote them, separated by commas.
func (p Patterns) String() string {
	texts := make([]string, 0, len(p))
	for _, one := range p {
		text := one.id.String()
		if one.below {
			text += "/*"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}
