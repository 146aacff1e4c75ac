// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
)

// generated is how many packages are made by chance.
const generated = 60

// maker makes packages by chance. It avoids what kpt's versions do differently: functions that depend
// on the order of packages, and configurations of which a function changes its own.
type maker struct {
	*rand.Rand
	tree files
}

// newPackage returns the package p of a seed, with packages inside it.
func newPackage(seed uint64) files {
	m := &maker{rand.New(rand.NewPCG(seed, 20)), files{}}
	m.addPackage("p", 0)
	return m.tree
}

func (m *maker) one(of ...string) string { return of[m.IntN(len(of))] }

func (m *maker) addPackage(dir string, depth int) {
	for i := range 1 + m.IntN(3) {
		m.addFile(path.Join(dir, m.one("", "sub"), fmt.Sprintf("f%d%s", i, m.one(".yaml", ".yml"))))
	}
	m.tree[path.Join(dir, "config.yaml")] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata:\n" +
		"  value: " + m.one("one", "two") + "\n  name: r0\n"
	var pipeline strings.Builder
	for range m.IntN(4) {
		pipeline.WriteString(m.mutator())
	}
	text := "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: " + path.Base(dir) + "\n"
	if pipeline.Len() > 0 {
		text += "pipeline:\n  mutators:\n" + pipeline.String()
	}
	if pipeline.Len() > 0 && m.IntN(2) == 0 {
		text += "  validators:\n    - image: example.com/" + m.one("warn:v1", "log:v1", "wipe:v1") + "\n"
	}
	m.tree[path.Join(dir, "Kptfile")] = text
	for i := range m.IntN(3) {
		if depth < 2 {
			m.addPackage(path.Join(dir, m.one("", "deep"), fmt.Sprintf("p%d", i)), depth+1)
		}
	}
}

// addFile adds a file with some resources, with and without comments.
func (m *maker) addFile(name string) {
	var documents []string
	for i := range 1 + m.IntN(3) {
		kind := m.one("ConfigMap", "Secret", "Deployment")
		text := fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: r%d\n", kind, i)
		if m.IntN(2) == 0 {
			text += "  namespace: ns # here\n"
		}
		if m.IntN(2) == 0 {
			text += "  labels:\n    tier: " + m.one("web", "db") + "\n"
		}
		if m.IntN(3) == 0 {
			text = "# about the resource\n" + text
		}
		if m.IntN(2) == 0 {
			text += "spec:\n  # a list\n  ports:\n" + m.one("  - 1\n  - b\n", "    - 1\n    - b\n")
		}
		documents = append(documents, text)
	}
	m.tree[name] = strings.Join(documents, "---\n")
}

// mutator returns an entry of a pipeline.
func (m *maker) mutator() string {
	text := "    - image: example.com/" + m.one("label", "label", "drop", "generate", "noop", "name") + ":v1\n"
	switch m.IntN(3) {
	case 0:
		text += "      configMap:\n        name: " + m.one("r0", "r1", "none") + "\n" +
			"        value: " + m.one("x", "\"7\"") + "\n"
	case 1:
		text += "      configMap:\n        value: y\n        index: \"0\"\n" +
			"        path: " + m.one("new/g.yaml", "g.yaml") + "\n"
	default:
		return "    - image: example.com/label:v1\n      configMap:\n        value: z\n" + m.selectors()
	}
	return text + m.selectors()
}

func (m *maker) selectors() string {
	text := ""
	if m.IntN(2) == 0 {
		text += "      selectors:\n        - " +
			m.one("kind: ConfigMap", "name: r1", "namespace: ns", "labels:\n            tier: web") + "\n"
	}
	if m.IntN(2) == 0 {
		text += "      exclude:\n        - " + m.one("kind: Kptfile", "name: config", "apiVersion: v2") + "\n"
	}
	return text
}
