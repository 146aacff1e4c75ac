// SPDX-License-Identifier: Apache-2.0

package tagconstraint_test

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/tagconstraint"
)

func ExampleConstraint_Highest() {
	constraint, err := tagconstraint.Parse("~0.4")
	if err != nil {
		panic(err)
	}
	fmt.Println(constraint.Highest([]string{"latest", "v0.3.9", "v0.4.1", "v0.4.10", "v0.5.0"}))
	// Output: v0.4.10 true
}
