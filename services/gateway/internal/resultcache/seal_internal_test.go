// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

var sealed = evaluation.Response{
	ResourceList: []byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"), Log: []byte("log"),
	Digest: "sha256:1", Results: []resourcelist.Result{{
		Message: "no image: \u2028", Severity: "error",
		ResourceRef: &resourcelist.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "a", Name: "b"},
		Field:       &resourcelist.Field{Path: "spec", CurrentValue: `"<x>"`, ProposedValue: "2"},
		File:        &resourcelist.File{Path: "a.yaml", Index: 3}, Tags: map[string]string{"a": "b"},
	}},
}

// FuzzOpen opens what a server may have: only values that were sealed open.
func FuzzOpen(f *testing.F) {
	s, err := newSealer(make([]byte, SealKeyBytes))
	if err != nil {
		f.Fatal(err)
	}
	key := NewKey("sha256:1", []byte("input"))
	value, err := s.seal(key, sealed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil))
	f.Add(value)
	f.Add(value[:len(value)-1])
	f.Add(append(bytes.Clone(value), 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		resp, err := s.open(key, bytes.Clone(data))
		if diff := cmp.Diff(sealed, resp); err == nil && diff != "" { // each process of the fuzzer has its own nonce
			t.Errorf("%x opens as another response (-want +got):\n%s", data, diff)
		}
		if _, err := s.open(NewKey("sha256:2", []byte("input")), bytes.Clone(data)); err == nil {
			t.Errorf("%x opens for another entry", data)
		}
	})
}

// FuzzField splits what was opened: a gateway of another version may have sealed it.
func FuzzField(f *testing.F) {
	f.Add([]byte("\x03abcrest"))
	f.Add([]byte("\x04abc"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, rest, ok := field(data)
		if ok && len(first)+len(rest) >= len(data) || !ok && first != nil {
			t.Errorf("%q and %q of %q", first, rest, data)
		}
	})
}

// TestSealedBytes holds MaxSealedBytes, which bounds what is read.
func TestSealedBytes(t *testing.T) {
	s, err := newSealer(make([]byte, SealKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	resp := sealed
	resp.Results = nil
	resp.Digest = "sha512:" + string(bytes.Repeat([]byte("x"), 128))
	resp.Log = make([]byte, 1<<20)
	value, err := s.seal(NewKey("", nil), resp)
	if err != nil {
		t.Fatal(err)
	}
	if n := MaxSealedBytes(len(resp.ResourceList) + len(resp.Log)); len(value) > n {
		t.Errorf("%d bytes, more than %d", len(value), n)
	}
}
