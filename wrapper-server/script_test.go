// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The program is tested under all the names by which it is called.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"wrapper-server":    main,
		"grpc-health-probe": main,
		"cp":                main,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
