// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/kio"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// TestGolden holds the fast path to what functions of the catalog write: such
// outputs must not need a full decode.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatalf("golden lists: %d, %v, want at least 4", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			checkStyle(t, data)
			got, ok := resourcelist.Recognise(data)
			if !ok {
				t.Fatal("the list needs a full decode")
			}
			want, err := resourcelist.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("results (-full decode +fast path):\n%s", diff)
			}
		})
	}
}

// checkStyle checks that a list is what kyaml itself writes.
func checkStyle(t *testing.T, data []byte) {
	t.Helper()
	var out bytes.Buffer
	list := kio.ByteReadWriter{
		Reader:                bytes.NewReader(data),
		Writer:                &out,
		KeepReaderAnnotations: true,
		OmitReaderAnnotations: true,
	}
	resources, err := list.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Write(resources); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), out.String()); diff != "" {
		t.Errorf("kyaml writes the list differently (-golden +kyaml):\n%s", diff)
	}
}
