// SPDX-License-Identifier: Apache-2.0

package typo_test

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/typo"
)

func ExampleNearest() {
	settings := []string{"FNR_ADDRESS", "FNR_MAX_QUEUE", "FNR_TLS_DIRECTORY"}
	fmt.Printf("%q\n", typo.Nearest("FNR_MAX_QEUE", settings, 2))
	fmt.Printf("%q\n", typo.Nearest("FNR_COLOUR", settings, 2))
	// Output:
	// "FNR_MAX_QUEUE"
	// ""
}
