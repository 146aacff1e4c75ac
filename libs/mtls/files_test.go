// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

// TestBrokenFilesChangeNothing writes files that cannot be used, and a good one after them.
func TestBrokenFilesChangeNothing(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	dirs := map[string]string{server: t.TempDir(), caller: t.TempDir()}
	for id, dir := range dirs {
		authority.Write(t, dir, id, time.Hour)
	}
	identity := mtlstest.Open(t, dirs[server])
	address := start(t, identity)
	secure := mtlstest.Open(t, dirs[caller]).ClientOfSibling("server")

	key := filepath.Join(dirs[server], mtls.KeyFile)
	if err := os.WriteFile(key, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Changes below ..data cause no notification.
	if err := os.Mkdir(filepath.Join(dirs[server], "notify"), 0o700); err != nil {
		t.Fatal(err)
	}
	await.Equal(t, "details", func() int { return len(identity.Details()) }, 1)
	if d := identity.Details()[0]; !strings.Contains(d, dirs[server]) || strings.Contains(d, "broken") {
		t.Errorf("the detail reads %q, want the directory in it and no content", d)
	}
	c := dial(t, "https://"+address, secure)
	if err := c.call(t.Context()); err != nil {
		t.Errorf("with a broken file: %v", err)
	}
	resp, err := c.health.CallUnary(t.Context(), connect.NewRequest(new(grpc_health_v1.HealthCheckRequest)))
	if err != nil || !strings.Contains(resp.Header().Get(serve.DetailHeader), dirs[server]) {
		t.Errorf("health check: %v, %v, want the detail", resp, err)
	}
	authority.Write(t, dirs[server], server, time.Hour)
	await.Equal(t, "details", func() int { return len(identity.Details()) }, 0)
}

// TestWhatIsNotAnIdentity opens directories that a program cannot start with.
func TestWhatIsNotAnIdentity(t *testing.T) {
	authority, foreign := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	tests := map[string]struct {
		change func(dir string) error
		want   string
	}{
		"a missing file": {
			func(dir string) error { return os.Remove(filepath.Join(dir, "..data", mtls.AuthoritiesFile)) },
			mtls.AuthoritiesFile,
		},
		"no authority": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, mtls.AuthoritiesFile), nil, 0o600) },
			"no certificate",
		},
		"another issuer": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, mtls.AuthoritiesFile), foreign.PEM, 0o600)
		}, "unknown authority"},
		"no SPIFFE ID": {
			func(dir string) error { authority.Write(t, dir, "https://td/x", time.Hour); return nil }, "SPIFFE",
		},
		"an expired one": {
			func(dir string) error { authority.Write(t, dir, server, -time.Millisecond); return nil }, "expired",
		},
		"a missing directory": {os.RemoveAll, "no such file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tls")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			authority.Write(t, dir, server, time.Hour)
			if err := tc.change(dir); err != nil {
				t.Fatal(err)
			}
			tel := telemetry.Discard()
			_, err := mtls.Open(mtls.Config{Directory: dir}, tel.Log, tel.Meters)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %q and the directory in it", err, tc.want)
			}
		})
	}
	i, err := mtls.Open(mtls.Config{}, nil, nil)
	if i != nil || err != nil || i.Server() != nil || i.ClientOfSibling("server") != nil {
		t.Errorf("without a directory: %v, %v", i, err)
	}
}

// TestMetricOfExpiry has a certificate that lives for a minute, and an authority that lives for a day.
func TestMetricOfExpiry(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	mtlstest.NewAuthority(t, 24*time.Hour).Write(t, dir, server, time.Minute)
	tel, scrape := scrapetest.New(t)
	if _, err := mtls.Open(mtls.Config{Directory: dir}, tel.Log, tel.Meters); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]struct{ life, warned time.Duration }{
		"certificate": {time.Minute, 15 * time.Second}, "issuer": {24 * time.Hour, time.Hour},
	} {
		expiry := value(t, scrape(), `fn_certificate_expiry_timestamp_seconds{certificate="`+what+`"}`)
		warning := value(t, scrape(), `fn_certificate_warning_timestamp_seconds{certificate="`+what+`"}`)
		if after := expiry.Sub(began); after < want.life-time.Minute || after > want.life+time.Minute {
			t.Errorf("the %s expires after %v, want %v", what, after, want.life)
		}
		if before := expiry.Sub(warning); before < want.warned || before > want.warned+want.warned/2 {
			t.Errorf("the %s is warned of %v before, want %v", what, before, want.warned)
		}
	}
}

// value returns the time in a metric.
func value(t *testing.T, metrics, name string) time.Time {
	t.Helper()
	_, text, _ := strings.Cut(metrics, "\n"+name+" ")
	text, _, _ = strings.Cut(text, "\n")
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("no value of %s in %s", name, metrics)
	}
	return time.Unix(int64(seconds), 0)
}
