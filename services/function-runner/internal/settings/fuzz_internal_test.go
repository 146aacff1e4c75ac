// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// FuzzLoad sets flags to arbitrary values: an accepted value is the one that the flag shows, and
// any other value is an error without effect.
func FuzzLoad(f *testing.F) {
	f.Setenv("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1") // the pod runtime is on
	names := slices.Sorted(maps.Keys(porchDefaults))
	for i, name := range names {
		f.Add(uint8(i), porchDefaults[name])
		f.Add(uint8(i), "exec, pod")
		f.Add(uint8(i), "-1")
	}
	f.Fuzz(func(t *testing.T, flag uint8, value string) {
		name := names[int(flag)%len(names)]
		s, err := Load([]string{"--" + name + "=" + value}, io.Discard)
		if err != nil {
			return
		}
		flags := s.porchFlags()
		i := slices.IndexFunc(flags, func(f porchFlag) bool { return f.name == name })
		again, err := Load([]string{"--" + name + "=" + flags[i].value.String()}, io.Discard)
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("--%s=%q shows as %q, which gives %v and\n%+v\nwant\n%+v", name, value, flags[i].value, err, again, s)
		}
	})
}
