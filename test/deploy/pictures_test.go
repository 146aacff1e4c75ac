// SPDX-License-Identifier: Apache-2.0

//go:build chromium

package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// positions writes for each line of a picture how many spaces it begins with, and where the browser draws its first
// letter. Browsers that collapse spaces draw all lines at the left margin.
const positions = `<pre id="positions"></pre><script>
document.getElementById("positions").textContent = [...document.querySelectorAll("text")].map((line) => {
  const indent = line.textContent.search(/\S/);
  const drawn = line.getNumberOfChars() > indent && indent >= 0 ? line.getStartPositionOfChar(indent).x : 0;
  return indent + ":" + drawn;
}).join(" ");
</script>`

// TestBrowsersIndentTheTerminalPicture has Chromium lay out the picture of README.
func TestBrowsersIndentTheTerminalPicture(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	picture := mustRead(t, filepath.Join(root, "docs/images/render.svg"))
	if err := os.WriteFile(page, []byte("<!doctype html>"+string(picture)+positions), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+page).Output()
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`<pre id="positions">([^<]+)</pre>`).FindSubmatch(out)
	if match == nil {
		t.Fatalf("the browser ran no script:\n%s", out)
	}
	indented := 0
	for i, line := range strings.Fields(string(match[1])) {
		var indent int
		var drawn float64
		if _, err := fmt.Sscanf(line, "%d:%g", &indent, &drawn); err != nil {
			t.Fatal(err)
		}
		if indent > 0 {
			indented++
		}
		const margin, narrowest, widest = 14, 6, 10 // a space of the font, in pixels
		if x := drawn - margin; indent >= 0 && (x < float64(narrowest*indent) || x > float64(widest*indent)) {
			t.Errorf("line %d, which begins with %d spaces, is drawn at %g", i+1, indent, drawn)
		}
	}
	if indented < 10 {
		t.Errorf("%d lines are indented: %s", indented, match[1])
	}
}
