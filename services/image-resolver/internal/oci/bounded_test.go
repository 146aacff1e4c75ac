// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// length is that of the hostile documents, in bytes: enough that what they take is their
// own, and so little that they are read in no time.
const length = 1 << 17

// full repeats an element, from its number, until there is a document.
func full(begin, element, end string) string {
	var b strings.Builder
	b.WriteString(begin)
	for i := 0; b.Len() < length; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.Replace(element, "#", strconv.Itoa(i), 1))
	}
	b.WriteString(end)
	return b.String()
}

func TestDocumentsTakeLittleMoreMemoryThanTheirText(t *testing.T) {
	const image, index = `{"config":{"digest":"` + someDigest + `"},`, `{"mediaType":"` + indexType + `",`
	config := func(field, begin, element, end string) string {
		return full(`{"config":{"Cmd":["fn"],"`+field+`":`+begin, element, end+`}}`)
	}
	tests := map[string]struct {
		reason   string
		manifest string // either
		config   string // or
		says     string // in the error; empty for success
	}{
		"members": {
			"each would be a descriptor", full(index+`"manifests":[`, "{}", `]}`), "", "more than 2000 entries",
		},
		"members of no use": {
			"they count as well", full(index+`"manifests":[`, "null", `]}`), "", "more than 2000 entries",
		},
		"numbers for members": {"the first is one too many", full(index+`"manifests":[`, "1", `]}`), "", "not valid"},
		"annotations":         {"they are not used", full(index+`"manifests":[],"annotations":{`, `"#":""`, `}}`), "", ""},
		"layers": {
			"each would be a descriptor", full(image+`"layers":[`, "{}", `]}`), "", "more than 2000 entries",
		},
		"lists in lists": {
			"they are not used", strings.Repeat("[", 9000) + full("", "[]", "") + strings.Repeat("]", 9000), "", "not valid",
		},
		"unknown fields":     {"it is passed over", full(image+`"x":[`, `[{"":[]}]`, `]}`), "", ""},
		"numbers in Env":     {"the first is one too many", "", config("Env", "[", "1", "]"), "not valid"},
		"numbers in Cmd":     {"the first is one too many", "", config("Cmd", "[", "1", "]"), "not valid"},
		"empty arguments":    {"each is a text", "", config("Entrypoint", "[", `""`, "]"), "more than 2000 entries"},
		"nothings in Env":    {"each is a text", "", config("Env", "[", "null", "]"), "more than 2000 entries"},
		"labels":             {"they are not used", "", config("Labels", "{", `"#":""`, "}"), ""},
		"history":            {"it is not used", "", full(`{"config":{"Cmd":["fn"]},"history":[`, "{}", "]}"), ""},
		"numbers in history": {"it is not used", "", full(`{"config":{"Cmd":["fn"]},"history":[`, "1", "]}"), ""},
		"diff_ids": {
			"they are not used", "", full(`{"config":{"Cmd":["fn"]},"rootfs":{"diff_ids":[`, `""`, "]}}"), "",
		},
		"volumes": {"they are not used", "", config("Volumes", "{", `"#":{}`, "}"), ""},
		"a long argument": {
			"that is what it takes", "", `{"config":{"Cmd":["` + strings.Repeat("x", length) + `"]}}`, "",
		},
		"a field, many times": {"each would take its time", full(index, `"manifests":[{},{},{}]`, "}"), "", "comes twice"},
		"a long digest": {
			"it is not quoted in full", `{"config":{"digest":"` + strings.Repeat("x", length) + `"}}`, "", "bytes left out",
		},
		"a long type": {
			"it is not quoted in full", `{"config":{"mediaType":"` + strings.Repeat("x", length) + `"}}`, "", "bytes left out",
		},
		"a text for the list": {"it is not quoted at all", "", config("Env", `"`, "x", `"`), `expected '['`},
		"many platforms": {
			"they are not all named",
			full(index+`"x":[`, "1", `],"manifests":[`) + strings.Repeat(
				`{"digest":"`+someDigest+`","mediaType":"`+imageType+`","platform":{"os":"plan9","architecture":"mips"}},`,
				1500,
			) + `{}]}`,
			"",
			"no image for",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			document := []byte(tc.manifest + tc.config)
			taken, err := measure(func() error {
				if tc.config != "" {
					_, err := oci.ParseConfig(&oci.Manifest{Config: someDigest}, document)
					return err
				}
				m, err := oci.ParseManifest(imageType, document)
				if err == nil && tc.says != "" {
					_, err = m.Select(oci.Platforms{{OS: "linux", Architecture: "amd64"}})
				}
				return err
			})
			if most := 8 * uint64(len(document)); taken > most {
				t.Errorf("%d bytes took %d, want at most %d: %s", len(document), taken, most, tc.reason)
			}
			if tc.says == "" {
				if err != nil {
					t.Errorf("%v: %s", err, tc.reason)
				}
				return
			}
			if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.says) || len(err.Error()) > 1000 {
				t.Errorf("%.2000v, want a short Precondition with %q: %s", err, tc.says, tc.reason)
			}
		})
	}
}

// measure returns how many bytes do allocates, freed ones included.
func measure(do func() error) (bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}
