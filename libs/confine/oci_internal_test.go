// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
)

// TestOCISeccompSaysTheSame compares what runtimes are told of arguments with the filter's own conditions,
// which are about lower halves. Runtimes may compare whole arguments, and so forbid more.
func TestOCISeccompSaysTheSame(t *testing.T) {
	calls, err := kernel{abi: newestNeeded}.filteredCalls(true)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range calls {
		if len(c.cases) == 0 {
			continue
		}
		compared++
		values := []uint64{0, 1, 2, 3, 1 << 31, 0xffffffff, 1 << 32, 0xffffffff_00000000}
		for _, condition := range slices.Concat(c.cases...) {
			v := uint64(condition.value)
			values = append(values, v, v-1, v+1, v^1<<31, v|1<<40, v&-v)
		}
		rules, random := ociArguments(c.cases), rand.New(rand.NewPCG(1, 2)) // the same in each run
		for range 20_000 {
			var arguments [6]uint64
			for i := range arguments {
				if arguments[i] = values[random.IntN(len(values))]; random.IntN(8) == 0 {
					arguments[i] = random.Uint64() >> random.IntN(64)
				}
			}
			more := slices.ContainsFunc(arguments[:], func(a uint64) bool { return a>>32 != 0 })
			if want, got := meets(c.cases, arguments), matches(rules, arguments); got != want && (!got || !more) {
				t.Fatalf("%s with %#x: the runtime's rules match: %v, the filter's: %v", c.name, arguments, got, want)
			}
		}
	}
	if compared < 5 {
		t.Errorf("compared %d calls only", compared)
	}
}

// meets reports whether arguments meet one of the filter's cases.
func meets(cases []match, arguments [6]uint64) bool {
	return slices.ContainsFunc(cases, func(conditions match) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool {
			value := uint32(arguments[c.argument])
			return !map[bpf.JumpTest]bool{
				bpf.JumpEqual: value == c.value, bpf.JumpNotEqual: value != c.value,
				bpf.JumpBitsSet: value&c.value != 0, bpf.JumpGreaterOrEqual: value >= c.value,
			}[c.test]
		})
	})
}

// matches reports whether arguments match one of the runtime's rules.
func matches(rules [][]ociArgument, arguments [6]uint64) bool {
	return slices.ContainsFunc(rules, func(rule []ociArgument) bool {
		return !slices.ContainsFunc(rule, func(a ociArgument) bool {
			if a.Operator == notEqual {
				return arguments[a.Index] == a.Mask
			}
			return arguments[a.Index]&a.Mask != a.Value
		})
	})
}

// TestOCISeccompIsWhatRuntimesTake checks what libseccomp refuses: an argument that occurs twice in a rule.
func TestOCISeccompIsWhatRuntimesTake(t *testing.T) {
	content, err := OCISeccomp()
	if err != nil {
		t.Fatal(err)
	}
	var section ociSeccomp
	if err := json.Unmarshal(content, &section); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, rule := range section.Rules {
		seen := map[uint32]bool{}
		for _, a := range rule.Arguments {
			if seen[a.Index] {
				t.Errorf("%v has argument %d twice", rule.Names, a.Index)
			}
			seen[a.Index] = true
		}
		if len(rule.Names) == 0 || rule.Errno == 0 {
			t.Errorf("a rule without names or error: %+v", rule)
		}
		for _, name := range rule.Names {
			names[name] = true
		}
	}
	for _, name := range []string{"ptrace", "mount", "socket", "personality", "clone", "clone3", "fallocate"} {
		if !names[name] {
			t.Errorf("no rule about %s", name)
		}
	}
	if most := 100 << 10; len(content) > most { // a part of one argument of a program, which has 128 KiB
		t.Errorf("%d bytes, want at most %d", len(content), most)
	}
}
