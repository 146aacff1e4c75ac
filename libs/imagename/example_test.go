// SPDX-License-Identifier: Apache-2.0

package imagename_test

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

func ExampleParse() {
	for _, image := range []string{"set-namespace:v0.4.1", "GHCR.io/org/fn", "org/fn@latest"} {
		name, err := imagename.Parse(image, "ghcr.io/kptdev/krm-functions-catalog")
		fmt.Println(name, err)
	}
	// Output:
	// ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1 <nil>
	// ghcr.io/org/fn:latest <nil>
	//  image "org/fn@latest" is not a valid image name: invalid reference format
}

func ExamplePatterns_Match() {
	patterns, err := imagename.ParsePatterns([]string{"ghcr.io/org/**", "docker.io/library/*"})
	if err != nil {
		panic(err)
	}
	for _, image := range []string{"ghcr.io/org/team/fn:v1", "busybox", "quay.io/org/fn"} {
		name, err := imagename.Parse(image, "")
		fmt.Println(name, patterns.Match(name), err)
	}
	// Output:
	// ghcr.io/org/team/fn:v1 true <nil>
	// docker.io/library/busybox:latest true <nil>
	// quay.io/org/fn:latest false <nil>
}
