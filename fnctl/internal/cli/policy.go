// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/libs/signer"
)

const policyTestHelp = `Test shows which rule of a policy decides about a call, and how. It asks for each
evaluator: exec runs local binaries, sandbox and pod run images. FILE is - for standard input.

It calls no gateway and no registry: give the digest of an image, and who has signed it, if rules depend on that.`

const policyTestExamples = `  fnctl policy test policy.yaml --image a.io/fn:v1 --caller spiffe://a.b/ns/c/sa/d
  # What a rule decides that requires a signature
  fnctl policy test policy.yaml --image a.io/fn:v1 --signer release --evaluator pod
  # Fail unless the call is denied in each evaluator
  fnctl policy test policy.yaml --image docker.io/example/fn:v1 --expect deny`

func newPolicy(env Environment) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Work with policies of gateways"}
	cmd.AddCommand(newPolicyTest(env))
	return cmd
}

// policyCall is the call that a policy is asked about, as flags describe it.
type policyCall struct {
	facts               policy.Facts
	image, kind, prefix string
	evaluators          []string
	listTags            bool
	expect              string
}

func newPolicyTest(env Environment) *cobra.Command {
	var call policyCall
	cmd := &cobra.Command{
		Use:     "test FILE --image IMAGE",
		Short:   "Show which rule of a policy decides about a call",
		Long:    policyTestHelp,
		Example: policyTestExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := call.complete(); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return testPolicy(env, args[0], call)
		},
	}
	call.register(cmd.Flags(), env)
	return cmd
}

func (c *policyCall) register(flags *pflag.FlagSet, env Environment) {
	flags.StringVarP(&c.image, "image", "i", "", "the function's image")
	flags.StringVar(&c.prefix, "image-prefix", env.ImagePrefix, "prefix of images without a slash, as the gateway's")
	flags.StringVar(&c.facts.Digest, "digest", "", "the image's digest, such as sha256:…")
	flags.StringSliceVar(&c.facts.Signers, "signer", nil, "signers of the policy that have signed the image")
	flags.StringVar(&c.facts.Caller.ID, "caller", "", "the caller's identity; empty for an anonymous caller")
	flags.StringVar(&c.kind, "caller-kind", "", "how the caller proved it: certificate (if empty) or token")
	flags.StringSliceVar(&c.facts.Caller.Groups, "group", nil, "groups of the caller")
	flags.StringVar(&c.facts.Address, "caller-address", "", "the address of the caller")
	flags.StringSliceVar(&c.evaluators, "evaluator", policy.Evaluators(), "evaluators to ask about")
	flags.Int64Var(&c.facts.InputBytes, "input-bytes", 0, "size of the resource list")
	flags.BoolVar(&c.listTags, "list-tags", false, "ask about the list of tags of the image's repository")
	flags.StringVar(&c.expect, "expect", "", "allow or deny: fail unless all decisions are that")
}

// complete checks the flags and fills in what follows from them.
func (c *policyCall) complete() error {
	if c.image == "" {
		return errors.New("name the function's image with --image")
	}
	name, err := imagename.Parse(c.image, cmp.Or(c.prefix, imagename.DefaultPrefix))
	if err != nil {
		return err
	}
	for _, evaluator := range c.evaluators {
		if !slices.Contains(policy.Evaluators(), evaluator) {
			return fmt.Errorf("--evaluator is %q: it has to be one of %s", evaluator, strings.Join(policy.Evaluators(), ", "))
		}
	}
	if !slices.Contains([]string{"", "allow", "deny"}, c.expect) {
		return fmt.Errorf("--expect is %q: it has to be allow or deny", c.expect)
	}
	c.facts.Image, c.facts.Operation, c.facts.Found = name, policy.Evaluate, "nothing, without --signer"
	if err := c.completeKind(); err != nil {
		return err
	}
	if c.listTags {
		c.facts.Image = imagename.Name{Repository: name.Repository}
		c.facts.Operation, c.evaluators = policy.ListTags, []string{""}
	}
	return nil
}

// completeKind sets how the caller proved its identity.
func (c *policyCall) completeKind() error {
	switch kind := caller.Kind(c.kind); {
	case kind != "" && kind != caller.Certificate && kind != caller.Token:
		return fmt.Errorf("--caller-kind is %q: it has to be certificate or token", c.kind)
	case kind != "":
		c.facts.Caller.Kind = kind
	case c.facts.Caller.ID != "":
		c.facts.Caller.Kind = caller.Certificate
	}
	return nil
}

// testPolicy prints what the policy in a file decides about a call.
func testPolicy(env Environment, path string, call policyCall) error {
	p, err := compilePolicy(env, path)
	if err != nil {
		return fmt.Errorf("policy %s: %w", path, err)
	}
	for _, name := range call.facts.Signers {
		if !slices.ContainsFunc(p.Signers(), func(s signer.Signer) bool { return s.Name == name }) {
			return fmt.Errorf("policy %s has no signer %q: its signers are at the top of the file", path, name)
		}
	}
	for _, warning := range p.Warnings() {
		env.errPrinter().Line("warning: %s", warning)
	}
	out, unexpected := env.outPrinter(), 0
	for _, evaluator := range call.evaluators {
		call.facts.Evaluator = evaluator
		d := p.Decide(call.facts)
		out.Line("%s", describeDecision(cmp.Or(evaluator, policy.ListTags), d))
		if call.expect != "" && d.Allow != (call.expect == "allow") {
			unexpected++
		}
	}
	if unexpected > 0 {
		return fmt.Errorf("the policy does not %s the call %d times of %d", call.expect, unexpected, len(call.evaluators))
	}
	return nil
}

// compilePolicy returns the policy in a file, or on standard input.
func compilePolicy(env Environment, path string) (*policy.Policy, error) {
	file, err := readPolicy(env, path)
	if err != nil {
		return nil, err
	}
	return policy.Compile(file, policy.Lists{})
}

// readPolicy reads a file with the keys beside it, or standard input with those in the current directory.
func readPolicy(env Environment, path string) (*policy.File, error) {
	if path != "-" {
		file, _, err := policy.Read(path)
		return file, err
	}
	content, err := io.ReadAll(io.LimitReader(env.Stdin, policy.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	file, err := policy.Parse(content)
	if err != nil {
		return nil, err
	}
	_, err = file.ReadKeys(".")
	return file, err
}

// describeDecision returns a line about a decision.
func describeDecision(what string, d policy.Decision) string {
	action := "deny"
	if d.Allow {
		action = "allow"
	}
	line := fmt.Sprintf("%-9s  %-5s  rule %s", what, action, d.Rule)
	if d.Reason != "" {
		line += ": " + d.Reason
	}
	if limits := describeLimits(d.Limits); len(limits) > 0 {
		line += " (" + strings.Join(limits, ", ") + ")"
	}
	return line
}

func describeLimits(l policy.Limits) []string {
	var limits []string
	if l.Concurrency > 0 {
		limits = append(limits, fmt.Sprintf("%d at a time", l.Concurrency))
	}
	if l.Rate > 0 {
		limits = append(limits, fmt.Sprintf("%v in a second", l.Rate))
	}
	if l.EvaluationTime > 0 {
		limits = append(limits, fmt.Sprintf("for %v", l.EvaluationTime))
	}
	if l.Network != nil {
		limits = append(limits, map[bool]string{true: "with network", false: "without network"}[*l.Network])
	}
	return limits
}
