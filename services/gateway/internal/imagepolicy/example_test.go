// SPDX-License-Identifier: Apache-2.0

package imagepolicy_test

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/imagepolicy"
)

func Example() {
	policy, err := imagepolicy.New(imagepolicy.Lists{
		Allow: []string{"ghcr.io/org/**"}, Deny: []string{"no-legacy=ghcr.io/org/legacy/*"},
	})
	if err != nil {
		panic(err)
	}
	for _, image := range []string{"ghcr.io/org/fn:v1", "ghcr.io/org/legacy/fn:v1"} {
		name, err := imagename.Parse(image, "")
		if err != nil {
			panic(err)
		}
		fmt.Println(policy.Check(name))
	}
	// Output:
	// <nil>
	// repository "ghcr.io/org/legacy/fn" is rejected by the rule "no-legacy" of the deny list
}
