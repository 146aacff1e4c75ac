// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

func ExampleMiddle() {
	fmt.Println(excerpt.Middle("function failed: no namespace given", 50))
	fmt.Println(excerpt.Middle("first line, many further lines, last line", 20))
	// Output:
	// function failed: no namespace given
	// first line [… 21 bytes left out …]  last line
}
