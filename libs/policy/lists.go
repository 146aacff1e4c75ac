// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// Lists are short forms of rules, which come before those of a file. Their items are patterns of
// repositories, or name=pattern.
type Lists struct {
	// Deny are images that no call may use.
	Deny []string
	// Allow are images of which each call has to use one, if there are any.
	Allow []string
	// RequireDigest denies images that are not named by digest.
	RequireDigest bool
}

// Names of the rules that lists become.
const (
	allowList     = "allow-list"
	requireDigest = "require-digest"
)

// rules returns the rules that the lists are short for.
func (l Lists) rules() ([]*rule, error) {
	var rules []*rule
	for _, item := range l.Deny {
		name, p, err := parseItem(item)
		if err != nil {
			return nil, err
		}
		rules = append(rules, &rule{
			images: patterns{p}, condition: condition{all: true}, decision: Decision{Rule: name},
			reason: func(f Facts) string { return f.Image.Repository + " is on the deny list" },
		})
	}
	var allowed patterns
	for _, item := range l.Allow {
		_, p, err := parseItem(item)
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, p)
	}
	if len(allowed) > 0 {
		rules = append(rules, &rule{
			except: allowed, condition: condition{all: true}, decision: Decision{Rule: allowList},
			reason: func(f Facts) string { return "no pattern of the allow list matches " + f.Image.Repository },
		})
	}
	if l.RequireDigest {
		rules = append(rules, withoutDigest())
	}
	return rules, nil
}

// withoutDigest returns the rule that denies images without digest.
func withoutDigest() *rule {
	parts := []node{equals{fieldOperation, Evaluate}, not{comparison{fieldName, "@", strings.Contains}}}
	return &rule{
		condition: condition{all: true, parts: parts}, decision: Decision{Rule: requireDigest},
		reason: func(f Facts) string { return "name the image by digest, as " + f.Image.Repository + "@sha256:…" },
	}
}

// parseItem reads "name=pattern" or "pattern", which is its own name then.
func parseItem(item string) (string, imagename.Pattern, error) {
	name, text, named := strings.Cut(item, "=")
	if !named {
		text = name
	}
	if name == "" || text == "" {
		return "", imagename.Pattern{}, fmt.Errorf("rule %q has to be a pattern, or name=pattern", item)
	}
	p, err := imagename.ParsePattern(text)
	return name, p, err
}
