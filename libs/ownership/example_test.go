// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/ownership"
)

func ExampleOwner() {
	replicas := []string{"10.0.0.1:9448", "10.0.0.2:9448", "10.0.0.3:9448"}
	owner := ownership.Owner(replicas, "ghcr.io/org/fn:v1")
	byDigest := ownership.Owner(replicas, "ghcr.io/org/fn:v1@sha256:0123")
	fmt.Println("owner:", replicas[owner])
	fmt.Println("the digest does not matter:", owner == byDigest)
	fmt.Println("without replicas:", ownership.Owner(nil, "ghcr.io/org/fn:v1"))
	// Output:
	// owner: 10.0.0.1:9448
	// the digest does not matter: true
	// without replicas: -1
}
