// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// TestComponentsFindTheirCertificates compares the written files with the flags of the
// components.
func TestComponentsFindTheirCertificates(t *testing.T) {
	l := layout.Layout{Name: "certificates"}
	signed, err := newAuthorities()
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{"ca": true, "registry-ca": true, "front-proxy-ca": true}
	for name := range signed.pairs() {
		written[name] = true
	}
	file := regexp.MustCompile(regexp.QuoteMeta(l.Path("pki")+string(os.PathSeparator)) + `([a-z-]+)\.(?:crt|key)`)
	read := map[string]bool{}
	for _, spec := range Components(l, Programs{}) {
		for _, match := range file.FindAllStringSubmatch(strings.Join(spec.Command, " "), -1) {
			read[match[1]] = true
		}
	}
	for name := range read {
		if !written[name] {
			t.Errorf("a component reads %s, which is not written", name)
		}
	}
	for _, name := range []string{"apiserver", "front-proxy", "front-proxy-ca"} {
		if !read[name] {
			t.Errorf("no component reads %s", name)
		}
	}
}

func TestRevisionIsStable(t *testing.T) {
	first, err := Revision()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Revision()
	if err != nil {
		t.Fatal(err)
	}
	if first != second || len(first) != 12 {
		t.Errorf("revisions %q and %q of one configuration", first, second)
	}
}
