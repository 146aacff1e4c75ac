// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"
)

// Bounds of a policy.
const (
	// MaxFileBytes is how large a file may be.
	MaxFileBytes = 1 << 20
	// MaxRules is how many rules a file may have.
	MaxRules = 5000
	// MaxConditionBytes is how long a condition may be.
	MaxConditionBytes = 8 << 10
	// maxPatterns is how many patterns a rule may have, maxMessageBytes how long its message may be.
	maxPatterns     = 100
	maxMessageBytes = 1 << 10
	maxConcurrency  = 1 << 20
	maxRate         = 1e6
)

// The actions of rules.
const (
	actionAllow = "allow"
	actionDeny  = "deny"
)

// File is the file of a policy, as users write it.
type File struct {
	// Default is the action for calls that no rule matches: allow or deny.
	Default string `yaml:"default"`
	// Signers are the signers of images that rules may name.
	Signers []Signer `yaml:"signers"`
	Rules   []Rule   `yaml:"rules"`
}

// Rule is a rule of a file. It matches the calls that have one of its images and fulfil its condition.
type Rule struct {
	// Name identifies the rule in errors and metrics.
	Name string `yaml:"name"`
	// Images are patterns of repositories; none match all.
	Images []string `yaml:"images"`
	// When is a condition in CEL; empty always holds.
	When string `yaml:"when"`
	// Action is allow or deny.
	Action string `yaml:"action"`
	// Signers are signers of which one has to have signed the image, or the rule denies the call.
	Signers []string `yaml:"signers"`
	// Message is for the callers that the rule denies.
	Message string      `yaml:"message"`
	Limits  *RuleLimits `yaml:"limits"`
}

// RuleLimits are the limits of a rule that allows; nil sets no limit.
type RuleLimits struct {
	Concurrency    *int           `yaml:"concurrency"`
	Rate           *float64       `yaml:"rate"`
	EvaluationTime *time.Duration `yaml:"evaluationTime"`
	Network        *bool          `yaml:"network"`
}

// ruleName is what a rule may be called. Names become labels of metrics.
var ruleName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Parse reads a file. An unknown field is an error: what a user has misspelled must not be without effect.
func Parse(content []byte) (*File, error) {
	if len(content) > MaxFileBytes {
		return nil, fmt.Errorf("it has %d bytes, and may have up to %d", len(content), MaxFileBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	var file File
	if err := decoder.Decode(&file); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty: write default: allow or default: deny, and rules")
		}
		return nil, fmt.Errorf("it is not the YAML of a policy: %w", err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one document: put all rules into the first")
	}
	return &file, file.check()
}

// check returns the first problem of a file.
func (f *File) check() error {
	if f.Default != actionAllow && f.Default != actionDeny {
		return fmt.Errorf("default is %q: it has to be allow or deny, for the calls that no rule matches", f.Default)
	}
	if len(f.Rules) > MaxRules {
		return fmt.Errorf("it has %d rules, and may have up to %d", len(f.Rules), MaxRules)
	}
	seen := make(map[string]bool, len(f.Rules))
	for i, r := range f.Rules {
		switch {
		case !ruleName.MatchString(r.Name):
			return fmt.Errorf("rules[%d].name is %q: it has to be up to 63 lower-case letters, digits and hyphens", i, r.Name)
		case r.Name == DefaultRule || seen[r.Name]:
			return fmt.Errorf("rules[%d].name is %q, which is the name of another rule already", i, r.Name)
		}
		seen[r.Name] = true
		if err := r.check(); err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	return f.checkSigners()
}

// check returns the first problem of a rule.
func (r *Rule) check() error {
	switch {
	case r.Action != actionAllow && r.Action != actionDeny:
		return fmt.Errorf("action is %q: it has to be allow or deny", r.Action)
	case len(r.Images) > maxPatterns:
		return fmt.Errorf("images has %d patterns, and may have up to %d", len(r.Images), maxPatterns)
	case len(r.When) > MaxConditionBytes:
		return fmt.Errorf("when has %d bytes, and may have up to %d", len(r.When), MaxConditionBytes)
	case len(r.Message) > maxMessageBytes:
		return fmt.Errorf("message has %d bytes, and may have up to %d", len(r.Message), maxMessageBytes)
	case r.Message != "" && r.Action == actionAllow:
		return errors.New("message is for rules that deny")
	case len(r.Signers) > 0 && r.Action == actionDeny:
		return errors.New("signers are for rules that allow: a rule that denies may ask for them in its condition, " +
			`such as !("release" in image.signers)`)
	case r.Limits == nil:
		return nil
	case r.Action == actionDeny:
		return errors.New("limits are for rules that allow")
	default:
		return r.Limits.check()
	}
}

// check returns the first problem of limits.
func (l *RuleLimits) check() error {
	switch {
	case l.Concurrency != nil && (*l.Concurrency < 1 || *l.Concurrency > maxConcurrency):
		return fmt.Errorf("limits.concurrency is %d: it has to be 1 to %d", *l.Concurrency, maxConcurrency)
	case l.Rate != nil && !(*l.Rate > 0 && *l.Rate <= maxRate): // NaN is neither
		return fmt.Errorf("limits.rate is %v: it has to be more than 0, and up to %d in a second", *l.Rate, int(maxRate))
	case l.EvaluationTime != nil && *l.EvaluationTime <= 0:
		return fmt.Errorf("limits.evaluationTime is %v: it has to be more than zero, such as 30s", *l.EvaluationTime)
	}
	return nil
}

// limits returns the limits as decisions have them.
func (l *RuleLimits) limits() Limits {
	var out Limits
	if l == nil {
		return out
	}
	if l.Concurrency != nil {
		out.Concurrency = *l.Concurrency
	}
	if l.Rate != nil {
		out.Rate = *l.Rate
	}
	if l.EvaluationTime != nil {
		out.EvaluationTime = *l.EvaluationTime
	}
	out.Network = l.Network
	return out
}
