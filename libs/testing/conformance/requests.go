// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lists contains resource lists in different YAML styles. The server must pass each list unchanged to the function,
// and unchanged back to the caller.
var lists = map[string]string{
	"block style":     List,
	"comments":        "# head\napiVersion: config.kubernetes.io/v1 # line\nkind: ResourceList\nitems:\n# foot\n- a: 1\n",
	"document marker": "---\n" + List,
	"CRLF":            strings.ReplaceAll(List, "\n", "\r\n"),
	"JSON":            `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"a":1}]}`,
	"anchors":         "kind: ResourceList\nitems:\n- &a {name: x}\n- *a\n",
	"other version":   "apiVersion: config.kubernetes.io/v1alpha1\nkind: ResourceList\nitems: []\n",
	"results first":   "kind: ResourceList\nresults:\n- message: m\nitems: []\n",
	"megabytes": "kind: ResourceList\nitems:\n" +
		strings.Repeat("- apiVersion: v1\n  kind: ConfigMap\n  data: {}\n", 100_000),
	"not ASCII": "kind: ResourceList\nitems:\n- name: größer 🙂\n",
}

func testBytes(t *testing.T, target Target) {
	fn := target.Serve(t, "echo")
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			resp, err := evaluateList(t, fn, list)
			if err != nil {
				t.Fatal(err)
			}
			if string(resp.GetResourceList()) != list {
				t.Errorf("%d bytes came back as other %d bytes", len(list), len(resp.GetResourceList()))
			}
		})
	}
	t.Run("results of severity error", func(t *testing.T) { testErrorResults(t, target.Serve(t, "warn")) })
	t.Run("input that is not read", func(t *testing.T) {
		if _, err := evaluateList(t, target.Serve(t, "ignore-stdin"), lists["megabytes"]); err != nil {
			t.Errorf("%v: a function need not read its input", err)
		}
	})
}

// testErrorResults tests that a function with exit code 0 succeeds, even if it returns a result of severity error.
func testErrorResults(t *testing.T, fn Function) {
	resp, err := evaluateList(t, fn, List)
	if err != nil {
		t.Fatalf("%v: the exit code decides, not the results", err)
	}
	if !strings.Contains(string(resp.GetResourceList()), "replicas must not be negative") ||
		string(resp.GetLog()) != "one resource is invalid\n" {
		t.Errorf("got list %q and log %q", resp.GetResourceList(), resp.GetLog())
	}
}

// aliasBomb returns a small YAML list that becomes enormous when its aliases are expanded.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("kind: ResourceList\nitems:\n- &a0 {x: lol}\n")
	for i := range 20 {
		fmt.Fprintf(&b, "- &a%d [%s*a%d]\n", i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return b.String()
}

// badRequest is a test case: a resource list that servers must reject, the expected code, and a part of the expected
// error message.
type badRequest struct {
	reason string
	list   string
	code   codes.Code
	text   string
}

func badRequests() map[string]badRequest {
	const (
		invalid  = codes.InvalidArgument
		notValid = "the resource list is not valid"
		items    = "kind: ResourceList\nitems: "
	)
	return map[string]badRequest{
		"empty":       {"nothing is no list", "", invalid, "no resource list given"},
		"not a list":  {"a resource is no list", "apiVersion: v1\nkind: ConfigMap\n", invalid, notValid},
		"broken YAML": {"nor is what does not parse", items + "[", invalid, notValid},
		"not UTF-8":   {"YAML is UTF-8", items + "[\"\xff\xfe\"]\n", invalid, "not UTF-8"},
		"YAML bomb":   {"it must not reach a function", aliasBomb(), invalid, notValid},
		"deep nesting": {
			"nor exhaust a server's stack", items + strings.Repeat("[", 1<<20), invalid, notValid,
		},
		"too large": {
			"the limit is for all of Porch", strings.Repeat("x", 7<<20), codes.ResourceExhausted,
			"larger than configured max",
		},
	}
}

func testBadRequests(t *testing.T, target Target) {
	fn := target.Serve(t, "echo")
	for name, tc := range badRequests() {
		if tc.code == codes.InvalidArgument && !target.NamesFunctions {
			continue
		}
		t.Run(name, func(t *testing.T) {
			_, err := evaluateList(t, fn, tc.list)
			if st := status.Convert(err); st.Code() != tc.code || !strings.Contains(st.Message(), tc.text) {
				t.Errorf("error %v, want code %v and %q: %s", err, tc.code, tc.text, tc.reason)
			}
			checkHealthy(t, fn)
			checkAlive(t, fn)
		})
	}
	t.Run("long name", func(t *testing.T) { testLongName(t, fn.Address) })
	if target.NamesFunctions {
		testBadImages(t, fn, cmp.Or(target.UnknownImage, codes.NotFound))
	}
}

// testLongName tests that the server rejects an image name that is too long for any registry.
func testLongName(t *testing.T, address string) {
	_, err := evaluateList(t, Function{Address: address, Image: strings.Repeat("a", 1<<20)}, List)
	if st := status.Convert(err); st.Code() != codes.InvalidArgument ||
		!strings.Contains(st.Message(), "the image's name has 1048576 bytes") {
		t.Errorf("error %v, want InvalidArgument: no registry has such names", err)
	}
}

// testBadImages tests requests with invalid image names and with images that do not exist. The argument unknown is the
// expected code for an image that does not exist.
func testBadImages(t *testing.T, fn Function, unknown codes.Code) {
	for image, code := range map[string]codes.Code{
		"":                        codes.InvalidArgument,
		"not an image":            codes.InvalidArgument,
		"example.com/UPPER:v1":    codes.InvalidArgument,
		"example.com/unknown:v1":  unknown,
		"evil.example/echo:v1":    unknown,
		fn.Image + "@sha256:0000": codes.InvalidArgument,
	} {
		t.Run(fmt.Sprintf("image %q", image), func(t *testing.T) {
			_, err := evaluateList(t, Function{Address: fn.Address, Image: image}, List)
			st := status.Convert(err)
			if st.Code() != code || st.Message() == "" {
				t.Errorf("error %v, want code %v", err, code)
			}
			if want := fmt.Sprintf("function %q not found", image); code == codes.NotFound &&
				!strings.HasPrefix(st.Message(), want) {
				t.Errorf("message %q, want %q and why", st.Message(), want)
			}
			checkHealthy(t, fn)
			checkAlive(t, fn)
		})
	}
}

func testLimits(t *testing.T, target Target) {
	t.Run("long log", func(t *testing.T) {
		resp, err := evaluateList(t, target.Serve(t, longLog), List)
		if err != nil || string(resp.GetResourceList()) != List || !strings.Contains(string(resp.GetLog()), " left out]") {
			t.Errorf("a function that logs a lot gets %v, %q, a log of %d bytes; want the list, and a log that is cut",
				err, resp.GetResourceList(), len(resp.GetLog()))
		}
	})
	const text = "bytes of output"
	for _, behaviour := range []string{"flood-stdout", "flood-both"} {
		t.Run(behaviour, func(t *testing.T) {
			fn := target.Serve(t, behaviour)
			for range 2 { // the server must still work after the first request
				_, err := evaluateList(t, fn, List)
				st := status.Convert(err)
				if st.Code() != codes.ResourceExhausted || !strings.Contains(st.Message(), text) ||
					!strings.Contains(st.Message(), fn.Image) {
					t.Errorf("error %v, want ResourceExhausted that names the function and says %q", err, text)
				}
				checkHealthy(t, fn)
			}
			checkOthers(t, target)
		})
	}
}
