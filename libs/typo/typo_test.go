// SPDX-License-Identifier: Apache-2.0

package typo_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/typo"
)

func TestNearest(t *testing.T) {
	names := []string{"image", "images", "name", "id"}
	for wrong, want := range map[string]string{
		"imag": "image", "imagess": "images", "IMAGE": "image", "nane": "name", "namespaces": "", "xy": "", "": "",
	} {
		if got := typo.Nearest(wrong, names, 2); got != want {
			t.Errorf("nearest to %q is %q, want %q", wrong, got, want)
		}
	}
}
