// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"strings"
	"testing"
)

// service is the configuration of a program without flags.
type service struct {
	Address string `default:":9445"`
	Settings
}

func (s *service) Validate() error { return nil }

func TestLoad(t *testing.T) {
	tests := map[string]struct {
		reason         string
		args           []string
		env            string // a variable that is set
		code           int
		end            bool
		stdout, stderr string
	}{
		"none": {reason: "it starts"},
		"help": {
			reason: "every setting with its default", args: []string{"--help"}, end: true,
			stdout: "  FNR_ADDRESS text\n      (default :9445)\n",
		},
		"shared": {
			reason: "those of all programs too", args: []string{"-h"}, end: true,
			stdout: "  FNR_SERVE_SHUTDOWN_TIMEOUT duration\n      limits the time ",
		},
		"flag": {
			reason: "it would have no effect", args: []string{"--port=1"}, code: wrongConfig, end: true,
			stderr: `["--port=1"]`,
		},
		"argument": {
			reason: "it would have no effect", args: []string{"serve"}, code: wrongConfig, end: true, stderr: "--help",
		},
		"variable": {reason: "it is checked", env: "FNR_ADDRESSES", code: wrongConfig, end: true, stderr: "FNR_ADDRESS"},
		"help first": {
			reason: "it helps with a wrong variable", args: []string{"--help"}, env: "FNR_ADDRESSES", end: true,
			stdout: "FNR_ADDRESS",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.env != "" {
				t.Setenv(tc.env, "x")
			}
			var stdout, stderr strings.Builder
			code, end := loadSettings("service", tc.args, new(service), &stdout, &stderr)
			if code != tc.code || end != tc.end || !strings.Contains(stdout.String(), tc.stdout) ||
				!strings.Contains(stderr.String(), tc.stderr) || (tc.stdout == "") != (stdout.Len() == 0) {
				t.Errorf("exit code %d (%v), %q, %q: %s", code, end, &stdout, &stderr, tc.reason)
			}
		})
	}
}
