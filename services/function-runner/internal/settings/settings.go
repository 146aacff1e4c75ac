// SPDX-License-Identifier: Apache-2.0

// Package settings reads the settings of the program function-runner from environment variables and from the flags
// of Porch's function runner. It passes them to the services that the program contains.
package settings

import (
	"errors"
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
	// Gateway is an alias of the gateway's settings. It is necessary because [Settings] cannot embed several types named
	// Config. If several embedded types contain the same field, its environment variable sets the field in each type.
	Gateway = gateway.Config
	// PodManager is an alias of the pod-manager's settings, for embedding in [Settings].
	PodManager = podmanager.Config
	// ImageResolver is an alias of the image-resolver's settings, for embedding in [Settings].
	ImageResolver = imageresolver.Config
)

// Settings contains all settings of the program function-runner, from flags and environment variables.
type Settings struct {
	Gateway
	PodManager
	ImageResolver
	servermain.Settings
	localrunner.SandboxSettings

	registries registryFlags
}

// registryFlags contains the values of Porch's flags for private registries.
type registryFlags struct {
	// credentials enables the registry credentials at authPath. authorities enables the certificates at tlsPath.
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

// Load returns the settings from the environment variables and args, the command-line arguments. Flags override
// environment variables. If args request help, Load prints the help to w and returns [ErrHelp]. An error names the flag
// or the variable.
func Load(args []string, w io.Writer) (Settings, error) {
	var s Settings
	if err := config.Fill(&s); err != nil {
		return Settings{}, err
	}
	s.setDefaults()
	set := flag.NewFlagSet("function-runner", flag.ContinueOnError)
	set.SetOutput(io.Discard) // callers print the error
	flags := s.porchFlags()
	for _, f := range flags {
		set.Var(f.value, f.name, f.usage)
	}
	set.Usage = func() {}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, ErrHelp) {
			printHelp(w, set)
			return Settings{}, err
		}
		return Settings{}, fmt.Errorf("%w (see --help)", err)
	}
	if set.NArg() > 0 {
		return Settings{}, fmt.Errorf("unexpected arguments %q: there are flags only", set.Args())
	}
	name := nameIn(flags)
	s.shareFlags()
	return s, config.Rename(s.Validate(), name)
}

// nameIn returns a function that returns the user-visible name of a setting. The argument of the returned function is a
// field of [Settings]. The name is the field's flag or, if there is no flag, the environment variable.
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

// shareFlags copies settings that several services use, such as the default image prefix, to the configurations of all
// these services. The copies are necessary because a flag, unlike an environment variable, sets only a single field.
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

// usedPaths returns the paths of the registry credentials and the registry certificates. A path is empty if the flags
// do not enable the credentials or the certificates.
func (r registryFlags) usedPaths() (auth, tls string) {
	if r.credentials {
		auth = r.authPath
	}
	if r.authorities {
		tls = r.tlsPath
	}
	return auth, tls
}

// ErrHelp is the error of [Load] after it has printed the help text.
var ErrHelp = flag.ErrHelp
