// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// OCISeccomp returns the rules of [SandboxFilter] as the seccomp section of an OCI runtime's
// configuration, in JSON. A runtime leaves out calls whose names its version does not know.
func OCISeccomp() ([]byte, error) {
	calls, err := kernel{abi: newestNeeded}.calls(true)
	if err != nil {
		return nil, fmt.Errorf("make the seccomp rules of sandboxes: %w", err)
	}
	slices.SortFunc(calls, func(a, b call) int { return strings.Compare(a.name, b.name) })
	section := ociSeccomp{Default: "SCMP_ACT_ALLOW"}
	for _, answer := range []bpf.RetConstant{forbidden, notImplemented, unsupported} {
		rule := ociRule{Action: "SCMP_ACT_ERRNO", Errno: answer.Val &^ unix.SECCOMP_RET_ERRNO}
		always := rule
		for _, c := range calls {
			switch {
			case c.answer != answer:
			case len(c.cases) == 0 || answer == unsupported:
				always.Names = append(always.Names, c.name)
			default:
				for _, arguments := range ociArguments(c.cases) {
					rule.Names, rule.Arguments = []string{c.name}, arguments
					section.Rules = append(section.Rules, rule)
				}
			}
		}
		section.Rules = append(section.Rules, always)
	}
	return json.Marshal(section)
}

// ociSeccomp is the seccomp section.
type ociSeccomp struct {
	Default string    `json:"defaultAction"`
	Rules   []ociRule `json:"syscalls"`
}

// ociRule applies if all of its arguments match.
type ociRule struct {
	Names     []string      `json:"names"`
	Action    string        `json:"action"`
	Errno     uint32        `json:"errnoRet"`
	Arguments []ociArgument `json:"args,omitempty"`
}

// The two comparisons: with an argument whose bits in Mask are those of Value, and, of all 64 bits, with
// one that is not Mask. An argument may occur once in a rule, so that "neither a nor b" has to be said in
// one comparison, which the first can.
const (
	bitsAre  = "SCMP_CMP_MASKED_EQ"
	notEqual = "SCMP_CMP_NE"
)

// ociArgument compares an argument.
type ociArgument struct {
	Index    uint32 `json:"index"`
	Mask     uint64 `json:"value"`
	Value    uint64 `json:"valueTwo,omitempty"`
	Operator string `json:"op"`
}

// ociArguments returns the arguments of the rules that together match what cases match.
func ociArguments(cases []match) (rules [][]ociArgument) {
	for _, conditions := range cases {
		matching := [][]ociArgument{nil}
		for _, index := range []uint32{0, 1, 2, 3, 4, 5} {
			alternatives, limited := ociAlternatives(conditions, index)
			if !limited {
				continue
			}
			var both [][]ociArgument
			for _, before := range matching {
				for _, alternative := range alternatives {
					both = append(both, append(before[:len(before):len(before)], alternative))
				}
			}
			matching = both
		}
		rules = append(rules, matching...)
	}
	return rules
}

// ociAlternatives returns what an argument may be for the conditions about it to hold; limited is
// whether there are any.
func ociAlternatives(conditions match, index uint32) (alternatives []ociArgument, limited bool) {
	var others []uint32
	for _, c := range conditions {
		if c.argument != index {
			continue
		}
		limited = true
		switch c.test {
		case bpf.JumpNotEqual:
			others = append(others, c.value)
		case bpf.JumpEqual:
			alternatives = append(alternatives, masked(index, math.MaxUint32, c.value))
		case bpf.JumpBitsSet:
			for rest := c.value; rest != 0; rest &= rest - 1 {
				alternatives = append(alternatives, masked(index, rest&-rest, rest))
			}
		case bpf.JumpGreaterOrEqual:
			for value := range c.value {
				others = append(others, value)
			}
		case bpf.JumpGreaterThan, bpf.JumpLessThan, bpf.JumpLessOrEqual, bpf.JumpBitsNotSet:
			panic("no rule has such a condition") // a test makes all rules
		}
	}
	if len(others) == 1 {
		alternatives = append(alternatives, ociArgument{Index: index, Mask: uint64(others[0]), Operator: notEqual})
	} else if len(others) > 1 {
		alternatives = append(alternatives, allBut(others, index)...)
	}
	return alternatives, limited
}

// masked returns the comparison of an argument's lower half, of which mask are the bits that count.
func masked(index, mask, value uint32) ociArgument {
	return ociArgument{index, uint64(mask), uint64(value & mask), bitsAre}
}

// allBut returns comparisons of which one holds for each value but those: it goes down from the highest bit
// as long as one of those begins with the same bits, and takes the branches that none of them has.
func allBut(values []uint32, index uint32) (comparisons []ociArgument) {
	var down func(prefix uint32, length int)
	down = func(prefix uint32, length int) {
		mask := ^uint32(0) << (32 - length) // none of them for 0
		if !slices.ContainsFunc(values, func(value uint32) bool { return value&mask == prefix }) {
			comparisons = append(comparisons, masked(index, mask, prefix))
			return
		}
		if length == 32 {
			return
		}
		down(prefix, length+1)
		down(prefix|1<<(31-length), length+1)
	}
	down(0, 0)
	return comparisons
}
