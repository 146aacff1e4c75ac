// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboardsFitGrafanasSchema decodes the dashboards into the types that Grafana generates from its schemas, with
// those of the panels and queries in them, and encodes them again. A field that a type does not have is an error, such
// as one with a typo. Grafana before version 12 does not read the newer format that the types recommend.
func TestDashboardsFitGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob(filepath.Join(dir, "dashboards/*.json"))
	if err != nil || len(files) != len(dashboards) {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var decoded dashboard.Dashboard //nolint:staticcheck // see above
		for _, err := range []error{decoded.UnmarshalJSONStrict(content), decoded.Validate()} {
			if err != nil && err.Error() != "" { // the list of errors may be empty
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
		decoded = dashboard.Dashboard{} //nolint:staticcheck // see above
		if err := json.Unmarshal(content, &decoded); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		for text, into := range map[string]*any{string(content): &want, string(again): &got} {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		for _, field := range lost(filepath.Base(file), want, got) {
			t.Errorf("%s is not in the schema", field)
		}
	}
}

// lost returns the fields of one value that another one does not have: the types decode some parts less strictly.
func lost(path string, want, got any) (fields []string) {
	switch want := want.(type) {
	case map[string]any:
		other, _ := got.(map[string]any)
		for name, value := range want {
			if _, ok := other[name]; !ok && !empty(value) {
				fields = append(fields, path+"."+name)
			}
			if other[name] != nil {
				fields = append(fields, lost(path+"."+name, value, other[name])...)
			}
		}
	case []any:
		other, _ := got.([]any)
		if len(other) != len(want) {
			return []string{path}
		}
		for i := range want {
			fields = append(fields, lost(fmt.Sprintf("%s[%d]", path, i), want[i], other[i])...)
		}
	}
	return fields
}

// empty reports whether a value says the same as none.
func empty(value any) bool {
	text := fmt.Sprint(value)
	return text == "" || text == "false" || text == "0" || text == "[]" || text == "map[]"
}
