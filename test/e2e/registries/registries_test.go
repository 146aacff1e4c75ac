// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"os"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}
