// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
)

// target is a package to mutate. At least one of its tests must fail after each mutation.
type target struct {
	module, dir string // path of the module in the repository, path of the package in the module
	// kills is true if the package sends signals to processes. Mutations of such a package are tested only in a sandbox.
	kills bool
}

// packages are the core packages of the system. Mutations show whether their tests are thorough.
var packages = []target{
	{module: "services/gateway", dir: "internal/admission"},
	{module: "libs", dir: "fnproc", kills: true},
	{module: "libs", dir: "function", kills: true},
	{module: "libs", dir: "resourcelist"},
	{module: "libs", dir: "evalserve"},
	{module: "libs", dir: "rpcserve"},
	{module: "libs", dir: "slowclient"},
	{module: "libs", dir: "serve"},
	{module: "libs", dir: "lease"},
	{module: "libs", dir: "fault"},
	{module: "libs", dir: "rpcfault"},
	{module: "libs", dir: "rpcclient"},
	{module: "services/gateway", dir: "internal/evalhandler"},
	{module: "services/gateway", dir: "internal/evaluation"},
	{module: "services/gateway", dir: "internal/nameresolver"},
	{module: "services/gateway", dir: "internal/podeval"},
	{module: "services/gateway", dir: "internal/replicas"},
	{module: "services/pod-manager", dir: "internal/pool"},
	{module: "services/pod-manager", dir: "internal/manager"},
	{module: "services/pod-manager", dir: "internal/kube"},
	{module: "services/pod-manager", dir: "internal/probe"},
	{module: "services/image-resolver", dir: "internal/cache"},
	{module: "libs", dir: "resolverclient"},
	{module: "services/image-resolver", dir: "internal/registry"},
	{module: "services/image-resolver", dir: "internal/resolver"},
}

func (t target) path() string { return filepath.Join(t.module, t.dir) }

// withoutKilling returns the packages that send no signals to processes. Their tests need no sandbox.
func withoutKilling(all []target) []target {
	return slices.DeleteFunc(slices.Clone(all), func(t target) bool { return t.kills })
}

func containsPath(all []target, path string) bool {
	return slices.ContainsFunc(all, func(t target) bool { return t.path() == path })
}
