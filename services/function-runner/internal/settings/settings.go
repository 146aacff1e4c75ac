// SPDX-License-Identifier: Apache-2.0

// Package settings parses Porch's flags and writes them to the configurations of the services in function-runner.
package settings

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

type (
	// Gateway is a name for embedding, as are PodManager and ImageResolver. Embedded configurations need no prefix in
	// the names of their variables, so that a single variable sets a setting of several services.
	Gateway = gateway.Config
	// PodManager is such a name too.
	PodManager = podmanager.Config
	// ImageResolver is such a name too.
	ImageResolver = imageresolver.Config
)

// Settings are all settings of function-runner, from flags and variables.
type Settings struct {
	Gateway
	PodManager
	ImageResolver
	servermain.Settings
	localrunner.SandboxSettings

	registries registryFlags
}

// registryFlags are Porch's flags for private registries.
type registryFlags struct {
	// credentials is true if the credentials at authPath are used, and authorities is true if the certificates at
	// tlsPath are used.
	credentials, authorities bool
	authPath, tlsPath        string
}

// Sandboxed reports whether functions may run in sandboxes.
func (s *Settings) Sandboxed() bool {
	launcher := s.SandboxSettings.Sandbox
	return launcher != "" && launcher != "off" && s.Gateway.Enabled(gateway.RuntimeSandbox)
}

// Validate checks all settings.
func (s *Settings) Validate() error {
	var checks config.Checks
	checks.Within("", s.Gateway.Validate())
	if s.Gateway.Enabled(gateway.RuntimePod) {
		checks.That(s.PodManager.MaxWaitlistLength > 0, "MaxWaitlistLength", s.PodManager.MaxWaitlistLength, "1 or more")
		checks.Within("", s.PodManager.Validate())
	}
	if s.Gateway.Enabled(gateway.RuntimePod) || s.Sandboxed() {
		checks.Within("", s.ImageResolver.Validate())
	}
	r := &s.ImageResolver
	checks.That(r.AuthSecretPath == "" || exists(r.AuthSecretPath), "AuthSecretPath", r.AuthSecretPath,
		"a file that exists, if private registries are enabled")
	checks.That(r.TLSSecretPath == "" || exists(r.TLSSecretPath), "TLSSecretPath", r.TLSSecretPath,
		"a directory that exists, if TLS for private registries is enabled")
	if s.Sandboxed() {
		s.SandboxSettings.Check(&checks)
	}
	s.Settings.Check(&checks)
	return checks.Err()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Load returns the settings of the environment and of a command line. Flags override variables. It prints help to w.
// Its errors contain the name of the flag or the variable.
func Load(args []string, w io.Writer) (Settings, error) {
	var s Settings
	if err := config.Fill(&s); err != nil {
		return Settings{}, err
	}
	s.setDefaults()
	set := flag.NewFlagSet("function-runner", flag.ContinueOnError)
	set.SetOutput(w)
	flags := s.porchFlags()
	for _, f := range flags {
		set.Var(f.value, f.name, f.usage)
	}
	set.Usage = func() { printHelp(set) }
	if err := set.Parse(args); err != nil {
		return Settings{}, err
	}
	if set.NArg() > 0 {
		return Settings{}, fmt.Errorf("unexpected arguments %q: there are flags only", set.Args())
	}
	name := nameIn(flags)
	s.shareFlags()
	return s, config.Rename(s.Validate(), name)
}

// nameIn returns a function that returns the name of a setting for users: the setting's flag or, if it has no flag,
// its variable.
func nameIn(flags []porchFlag) func(field string) string {
	return func(field string) string {
		if field == "WrapperServerImage" {
			return "WRAPPER_SERVER_IMAGE" // name of the variable in Porch
		}
		i := slices.IndexFunc(flags, func(f porchFlag) bool { return f.field == field })
		if i < 0 {
			return config.Variable(field)
		}
		return "--" + flags[i].name
	}
}

// shareFlags copies settings that several services use from one configuration to the others, because a flag sets only
// one field.
func (s *Settings) shareFlags() {
	s.ImageResolver.DefaultImagePrefix = s.Gateway.DefaultImagePrefix
	s.PodManager.DefaultImagePrefix = s.Gateway.DefaultImagePrefix
	s.PodManager.MaxMessageBytes = s.Gateway.MaxMessageBytes
	s.ImageResolver.AuthSecretPath, s.ImageResolver.TLSSecretPath = s.registries.usedPaths()
	s.Gateway.Secrets = []string{s.registries.authPath, s.registries.tlsPath, gateway.ServiceAccount}
	if s.TLS.Directory != "" {
		s.Gateway.Secrets = append(s.Gateway.Secrets, s.TLS.Directory)
	}
	s.PodManager.AuthSecretPath = s.ImageResolver.AuthSecretPath
	s.Gateway.Sandbox = s.SandboxSettings.Launcher()
}

// usedPaths returns authPath and tlsPath. A path is empty unless its flag enables it.
func (r registryFlags) usedPaths() (auth, tls string) {
	if r.credentials {
		auth = r.authPath
	}
	if r.authorities {
		tls = r.tlsPath
	}
	return auth, tls
}

// ErrHelp is the error that Load returns after it has printed the help.
var ErrHelp = flag.ErrHelp
