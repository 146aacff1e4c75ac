// SPDX-License-Identifier: Apache-2.0

package compose

import "testing"

func TestOnLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"localhost:9445": true, "127.0.0.1:0": true, "127.1.2.3:1": true, "[::1]:9445": true,
		":9445": false, "0.0.0.0:9445": false, "[::]:9445": false, "10.0.0.1:9445": false,
		"runner.example:9445": false, "": false,
	} {
		if got := onLoopback(address); got != want {
			t.Errorf("onLoopback(%q) = %v, want %v", address, got, want)
		}
	}
}
