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

// OCISeccomp returns the rules of [SandboxFilter] as JSON for the seccomp section in the configuration of an OCI
// runtime. Runtimes ignore system calls whose names they do not recognize.
func OCISeccomp() ([]byte, error) {
	calls, err := kernel{abi: newestNeeded}.filteredCalls(true)
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
			case len(c.cases) == 0:
				always.Names = append(always.Names, c.name)
			default:
				for _, arguments := range ociArguments(c.cases) {
					rule.Names = []string{c.name}
					rule.Arguments = arguments
					section.Rules = append(section.Rules, rule)
				}
			}
		}
		section.Rules = append(section.Rules, always)
	}
	return json.Marshal(section)
}

type ociSeccomp struct {
	Default string    `json:"defaultAction"`
	Rules   []ociRule `json:"syscalls"`
}

// ociRule applies to a system call if all of the rule's comparisons with the call's arguments are true.
type ociRule struct {
	Names     []string      `json:"names"`
	Action    string        `json:"action"`
	Errno     uint32        `json:"errnoRet"`
	Arguments []ociArgument `json:"args,omitempty"`
}

// Operators that an OCI rule uses to compare an argument. With bitsAre, the argument's bits in Mask must equal Value.
// With notEqual, the whole 64-bit argument must differ from Mask. A rule may compare each argument only once. Therefore
// "neither a nor b" requires several rules with bitsAre (see [allBut]).
const (
	bitsAre  = "SCMP_CMP_MASKED_EQ"
	notEqual = "SCMP_CMP_NE"
)

type ociArgument struct {
	Index    uint32 `json:"index"`
	Mask     uint64 `json:"value"`
	Value    uint64 `json:"valueTwo,omitempty"`
	Operator string `json:"op"`
}

// ociArguments translates the forbidden arguments of a call into rules. Each rule is a list of comparisons, which must
// all be true. Together, the rules match exactly the calls that cases describes.
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

// ociAlternatives translates the conditions on an argument into comparisons. The conditions are met if at least one of
// the returned comparisons is true. The result limited reports whether the argument has any conditions.
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
			alternatives = append(alternatives, compareBits(index, math.MaxUint32, c.value))
		case bpf.JumpBitsSet:
			for rest := c.value; rest != 0; rest &= rest - 1 {
				alternatives = append(alternatives, compareBits(index, rest&-rest, rest))
			}
		case bpf.JumpGreaterOrEqual:
			for value := range c.value {
				others = append(others, value)
			}
		case bpf.JumpGreaterThan, bpf.JumpLessThan, bpf.JumpLessOrEqual, bpf.JumpBitsNotSet:
			panic("no rule has such a condition") // a test translates all rules
		}
	}
	if len(others) == 1 {
		alternatives = append(alternatives, ociArgument{Index: index, Mask: uint64(others[0]), Operator: notEqual})
	} else if len(others) > 1 {
		alternatives = append(alternatives, allBut(others, index)...)
	}
	return alternatives, limited
}

// compareBits returns a comparison that is true if the argument and value have equal bits in mask.
func compareBits(index, mask, value uint32) ociArgument {
	return ociArgument{index, uint64(mask), uint64(value & mask), bitsAre}
}

// allBut returns comparisons that together match all values except the given values. It starts with the range of all
// 32-bit numbers. It repeatedly halves each range that contains a given value. Each range without a given value becomes
// a comparison.
func allBut(values []uint32, index uint32) (comparisons []ociArgument) {
	var down func(prefix uint32, length int)
	down = func(prefix uint32, length int) {
		mask := ^uint32(0) << (32 - length) // zero for length 0
		if !slices.ContainsFunc(values, func(value uint32) bool { return value&mask == prefix }) {
			comparisons = append(comparisons, compareBits(index, mask, prefix))
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
