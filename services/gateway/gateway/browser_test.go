// SPDX-License-Identifier: Apache-2.0

//go:build chromium

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// probe is a script in the page that does what the test tells it, and reports what the browser shows.
const probe = `
const visible = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).length;
let text = "";
const report = () => ({
  text,
  width: innerWidth, content: document.documentElement.scrollWidth, pods: visible("details tbody tr"),
  open: document.querySelectorAll("details[open]").length, named: visible("[data-text]"),
  focused: document.activeElement.id, state: document.getElementById("state").textContent,
  background: getComputedStyle(document.body).backgroundColor, selected: getSelection().toString(), scrolled: scrollY,
});
const refreshed = () => new Promise((done) =>
  new MutationObserver(done).observe(document.getElementById("main"), { attributeFilter: ["data-refreshed"] }));
const commands = {
  report: () => {},
  key: async ({ text }) => {
    const next = text === "r" ? refreshed() : null;
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: text, bubbles: true }));
    await next;
  },
  click: ({ text }) => document.querySelector(text).click(),
  select: ({ text }) => {
    const element = document.querySelector(text);
    element.scrollIntoView();
    getSelection().selectAllChildren(element);
  },
  type: ({ text }) => {
    document.activeElement.value = text;
    document.activeElement.dispatchEvent(new Event("input"));
  },
  await: async ({ section, text: wanted }) => {
    const limit = Date.now() + 60000;
    const now = () => document.getElementById(section).closest("section").innerText;
    for (text = now(); !text.includes(wanted) && Date.now() < limit; text = now()) {
      await refreshed();
    }
  },
};
addEventListener("load", async () => {
  for (;;) {
    const response = await fetch("probe", { method: "POST", body: JSON.stringify(report()) });
    const command = await response.json();
    await commands[command.do](command);
  }
});
`

// command is what the probe does next.
type command struct {
	Do      string `json:"do"`
	Section string `json:"section"`
	Text    string `json:"text"`
}

// report is what the browser shows after a command.
type report struct {
	// Width is that of the window, and Content that of the page.
	Width, Content int
	// Pods, and Named, which have a function's name, are visible rows. Open is the number of open pools.
	Pods, Named, Open          int
	Focused, State, Background string
	// Selected is the selected text, and Scrolled how far the window is scrolled.
	Selected string
	Scrolled float64
	// Text is that of the section that was awaited last.
	Text string
}

// browser is a window with the status page.
type browser struct {
	t        *testing.T
	commands chan command
	reports  chan report
	ended    chan error
}

// browse opens the status page at an address.
func browse(t *testing.T, address string, args ...string) *browser {
	t.Helper()
	b := &browser{t, make(chan command), make(chan report), make(chan error, 1)}
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(b.proxy(ctx, address))
	dir := t.TempDir()
	go func() { b.ended <- chromium(ctx, dir, append(args, server.URL)...) }()
	t.Cleanup(func() {
		stop()
		<-b.ended
		server.Close()
	})
	b.report()
	return b
}

// proxy returns the page with the probe, which the page's own policy permits.
func (b *browser) proxy(ctx context.Context, address string) http.Handler {
	transport := &http.Transport{}
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	proxy.Transport = transport
	proxy.ModifyResponse = withProbe
	mux := http.NewServeMux()
	mux.Handle("GET /", proxy)
	mux.HandleFunc("GET /probe.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, probe)
	})
	mux.HandleFunc("POST /probe", func(w http.ResponseWriter, r *http.Request) {
		var got report
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			b.t.Error(err)
		}
		select {
		case b.reports <- got:
		case <-ctx.Done():
			return
		}
		select {
		case next := <-b.commands:
			_ = json.NewEncoder(w).Encode(next)
		case <-ctx.Done():
		}
	})
	return mux
}

// withProbe adds the probe to a page.
func withProbe(answer *http.Response) error {
	page, err := io.ReadAll(answer.Body)
	page = bytes.Replace(page, []byte("</head>"), []byte(`<script src="probe.js" defer></script></head>`), 1)
	answer.Body = io.NopCloser(bytes.NewReader(page))
	answer.ContentLength = int64(len(page))
	answer.Header.Set("Content-Length", strconv.Itoa(len(page)))
	return err
}

// report returns what the browser shows when it has done what it was told.
func (b *browser) report() report {
	b.t.Helper()
	select {
	case got := <-b.reports:
		return got
	case err := <-b.ended:
		b.ended <- err
		b.t.Fatalf("the browser ended: %v", err)
	case <-time.After(2 * time.Minute):
		b.t.Fatal("the browser does not do what it was told")
	}
	return report{}
}

// do has the browser do something, and returns what it shows then.
func (b *browser) do(what, text string) report {
	b.t.Helper()
	b.commands <- command{Do: what, Text: text}
	return b.report()
}

// await returns when a section of the page shows a text, without the help of the user.
func (b *browser) await(section, text string) {
	b.t.Helper()
	b.commands <- command{Do: "await", Section: section, Text: text}
	if got := b.report().Text; !strings.Contains(got, text) {
		b.t.Fatalf("%s never shows %q, but %q", section, text, got)
	}
}

// chromium runs a headless browser until ctx ends, or until it has written a screenshot.
func chromium(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "chromium", append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--user-data-dir=" + dir,
	}, args...)...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}
