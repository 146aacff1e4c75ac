// SPDX-License-Identifier: Apache-2.0

//go:build chromium

package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

var screenshots = flag.String("screenshots", "", "write screenshots of the page to this directory")

// probe reports what the browser shows, before and after a refresh.
const probe = `
addEventListener("load", async () => {
  const key = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const rows = () => [...document.querySelectorAll("details tbody tr")].filter((r) => r.checkVisibility()).length;
  const report = { width: innerWidth, content: document.documentElement.scrollWidth, pods: rows() };
  document.querySelector("details summary").click();
  key("r");
  await new Promise((done) => new MutationObserver(done).observe(document.getElementById("main"), { childList: true }));
  report.closedStaysClosed = !document.querySelector("details").open;
  report.refreshed = rows();
  key("/");
  report.filterFocused = document.activeElement.id === "filter";
  document.activeElement.value = "function-1:";
  document.activeElement.dispatchEvent(new Event("input"));
  report.filtered = rows();
  document.activeElement.blur();
  key("p");
  report.state = document.getElementById("state").textContent;
  report.background = getComputedStyle(document.body).backgroundColor;
  await fetch("probe", { method: "POST", body: JSON.stringify(report) });
});
`

// report is what the probe reports.
type report struct {
	Width, Content                   int
	Pods, Refreshed, Filtered        int
	ClosedStaysClosed, FilterFocused bool
	State, Background                string
}

// probed serves h with the probe in the page, which the page's own policy permits, and passes on what it reports.
func probed(t *testing.T, h http.Handler) (url string, reports <-chan report) {
	t.Helper()
	received := make(chan report, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /probe.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(probe))
	})
	mux.HandleFunc("POST /probe", func(_ http.ResponseWriter, r *http.Request) {
		var got report
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		received <- got
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		_, _ = w.Write(bytes.Replace(answer.Body.Bytes(), []byte("</head>"),
			[]byte(`<script src="probe.js" defer></script></head>`), 1))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, received
}

// chromium runs a headless browser until ctx ends, or until it has written a screenshot.
func chromium(ctx context.Context, t *testing.T, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(ctx, "chromium", append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--user-data-dir=" + t.TempDir(),
	}, args...)...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}

// browse opens the page in a window and returns what the probe reports.
func browse(t *testing.T, h http.Handler, args ...string) report {
	t.Helper()
	url, reports := probed(t, h)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- chromium(ctx, t, append(args, url)...) }()
	var got report
	select {
	case got = <-reports:
	case err := <-ended:
		stop()
		t.Fatalf("the browser ended: %v", err)
	}
	stop()
	<-ended
	return got
}

// TestBrowser uses the page of 500 pods with the keyboard, in a wide and in a narrow window.
func TestBrowser(t *testing.T) {
	var pods atomic.Int32
	pods.Store(10)
	h := handler(evaluated(), poolsFunc(func() ([]*podmanagerv1.Pool, error) {
		return fleet(50, int(pods.Swap(11))), nil
	}))
	for _, tc := range []struct {
		name, size string
		maxWidth   int
	}{{"wide", "1280,900", 1280}, {"narrow", "500,800", 500}} {
		t.Run(tc.name, func(t *testing.T) {
			pods.Store(10)
			got := browse(t, h, "--window-size="+tc.size)
			// A pool that was closed shows no pods: 49 of 50 do, with a pod more each.
			if got.Pods != 500 || got.Refreshed != 49*11 || !got.ClosedStaysClosed {
				t.Errorf("500 pods, and a pool closed before a refresh: %+v", got)
			}
			if got.Width > tc.maxWidth || got.Content > got.Width {
				t.Errorf("the page is %d pixels wide in a window of %d", got.Content, got.Width)
			}
			if !got.FilterFocused || got.Filtered != 11 || got.State != "paused" {
				t.Errorf("keyboard: %+v", got)
			}
		})
	}
}

func TestDarkMode(t *testing.T) {
	pools := poolsFunc(func() ([]*podmanagerv1.Pool, error) { return fleet(2, 2), nil })
	light, dark := browse(t, handler(evaluated(), pools)), browse(t, handler(evaluated(), pools), "--force-dark-mode",
		"--blink-settings=preferredColorScheme=0")
	if light.Background != "rgb(255, 255, 255)" || dark.Background == light.Background {
		t.Errorf("background %q, in dark mode %q", light.Background, dark.Background)
	}
}

// TestScreenshots writes the images of the documents, if -screenshots names their directory, ../../../../docs/images.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("without -screenshots")
	}
	dir, err := filepath.Abs(*screenshots)
	if err != nil {
		t.Fatal(err)
	}
	h := handler(evaluated(), poolsFunc(func() ([]*podmanagerv1.Pool, error) { return fleet(2, 3), nil }))
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for name, args := range map[string]string{
		"status.png":      "--window-size=1100,1150",
		"status-dark.png": "--window-size=500,1150 --force-dark-mode --blink-settings=preferredColorScheme=0",
	} {
		file := filepath.Join(dir, name)
		if err := chromium(t.Context(), t, append(strings.Fields(args), "--screenshot="+file, server.URL)...); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
