// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const dir = "../../deploy/observability"

func TestAlertedPanelsExist(t *testing.T) {
	titles := map[string]bool{}
	for _, b := range dashboards {
		for _, r := range append(b.rows, row{panels: b.panels}) {
			for _, p := range r.panels {
				titles[p.title] = true
			}
		}
	}
	for title := range alerted {
		if !titles[title] {
			t.Errorf("no panel is called %q", title)
		}
	}
}

func TestFilesAreGenerated(t *testing.T) {
	files, err := generate(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated (%v): run make dashboards, and commit the result", name, err)
		}
	}
	present, err := filepath.Glob(filepath.Join(dir, "dashboards/*.json"))
	if err != nil || len(present) != len(dashboards) {
		t.Errorf("%d dashboards (%v), want %d", len(present), err, len(dashboards))
	}
	list, err := os.ReadFile(filepath.Join(dir, "dashboards/kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range dashboards {
		if !strings.Contains(string(list), "["+name+".json]") {
			t.Errorf("dashboards/kustomization.yaml does not have %s.json", name)
		}
	}
}
