// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// banned are packages that must not get into function pods, each with the reason.
var banned = map[string]string{
	"k8s.io":                                 "the wrapper server does not use Kubernetes, and each pod start copies it",
	"sigs.k8s.io":                            "kyaml alone adds 10 MB; libs/resourcelist judges lists without it",
	"github.com/google/go-containerregistry": "it talks to no registry",
	"testing":                                "tests stay out of programs",
}

func TestDependencies(t *testing.T) { gobuild.Without(t, banned) }

// maxSize is the maximum size of the stripped binary, in bytes: init containers copy it at
// each pod start.
const maxSize = 23_000_000

func TestSize(t *testing.T) { gobuild.AtMost(t, maxSize) }
