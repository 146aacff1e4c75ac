// SPDX-License-Identifier: Apache-2.0

// Package credentials finds the credentials for image registries as docker does. It reads docker configuration
// files and runs the credential helpers that these files name.
package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
)

// helperLifetime is the lifetime of credential helpers' cached answers. It is short because cloud tokens expire early.
var helperLifetime = cache.Lifetime{TTL: time.Minute, Failure: 5 * time.Second}

// Config configures a Store.
type Config struct {
	// Files are paths of docker configuration files. For each registry, the first file with a credential is used. Callers
	// may create and change the files later.
	Files []string
	Log   *slog.Logger
	// Changed is called after each change of a file's content, so that the caller can retry requests that had failed.
	Changed func()
}

// Credential is a credential for a registry. The zero Credential means that no credential is configured.
type Credential struct {
	// Auth contains a user name with a password, or a token.
	Auth authn.AuthConfig
	// Origin is the file that contains the credential or the name of its credential helper, for error messages.
	Origin string
	// Kept is true if the credential is a copy in memory, which may be outdated. If a registry rejects it, call Renew.
	Kept bool
}

// IsZero reports whether there is no credential.
func (c Credential) IsZero() bool { return c.Auth == authn.AuthConfig{} }

// Store finds credentials in several docker configuration files. It caches the answers of credential helpers.
type Store struct {
	cfg     Config
	helpers *cache.Cache[helperKey, types.AuthConfig]
	files   []*file
}

// file is a docker configuration file and its last valid content.
type file struct {
	path string

	mu      sync.RWMutex
	content []byte
	config  *dockerConfig
}

// New reads the docker configuration files. Missing files are ignored, but an invalid file is an error.
func New(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, helpers: newHelpers(cfg.Log)}
	for _, path := range cfg.Files {
		f := &file{path: path, config: new(dockerConfig)}
		if _, err := f.readChanges(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

// helperKey identifies the cached answer of a credential helper for a registry.
type helperKey struct{ helper, server string }

func newHelpers(log *slog.Logger) *cache.Cache[helperKey, types.AuthConfig] {
	return cache.New(cache.Config[helperKey, types.AuthConfig]{
		MaxBytes: 1 << 20, MaxFetches: 100, FetchTimeout: helperTimeout + 2*helperGrace, Log: log,
		Fetch: func(ctx context.Context, k helperKey) (types.AuthConfig, error) {
			return runHelper(ctx, helperTimeout, k.helper, k.server)
		},
		Lifetime: func(helperKey) cache.Lifetime { return helperLifetime },
		Size: func(k helperKey, a types.AuthConfig) int64 {
			return int64(len(k.helper) + len(k.server) + len(a.Username) + len(a.Password) + len(a.IdentityToken))
		},
	})
}

// Lookup returns the credential for a repository, such as "ghcr.io/org/image". It is zero if no credential is
// configured. Errors are of class fault.Precondition if a credential helper fails, and of class fault.Unavailable
// if it does not answer in time.
func (s *Store) Lookup(ctx context.Context, repository string) (Credential, error) {
	return s.find(ctx, repository, false)
}

// Renew is like Lookup, but reads the files and runs the credential helpers again instead of using cached answers.
// Callers use it after a registry rejected a credential, because the credential may have been rotated.
func (s *Store) Renew(ctx context.Context, repository string) (Credential, error) {
	for _, f := range s.files {
		s.reloadFile(ctx, f)
	}
	return s.find(ctx, repository, true)
}

func (s *Store) find(ctx context.Context, repository string, renew bool) (Credential, error) {
	for _, f := range s.files {
		auth, kept, err := s.askFile(ctx, f, repository, renew)
		if err != nil {
			return Credential{}, err
		}
		if auth != (types.AuthConfig{}) {
			return Credential{Origin: f.path, Kept: kept, Auth: authn.AuthConfig{
				Username: auth.Username, Password: auth.Password,
				IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
			}}, nil
		}
	}
	return Credential{}, nil
}

// askFile returns the credential for a repository from a configuration file or its credential helper. The result kept
// is true if the credential is a copy in memory, which may be outdated.
func (s *Store) askFile(
	ctx context.Context, f *file, repository string, renew bool,
) (auth types.AuthConfig, kept bool, err error) {
	f.mu.RLock()
	helper, server, inline := f.config.findCredentials(repository)
	f.mu.RUnlock()
	if helper == "" {
		return inline, true, nil
	}
	query := s.helpers.Get
	if renew {
		query = s.helpers.Renew
	}
	answer, err := query(ctx, helperKey{helper, server})
	if err != nil {
		return types.AuthConfig{}, false, fmt.Errorf("credentials from %s: %w", f.path, err)
	}
	if answer.Value == (types.AuthConfig{}) {
		return inline, true, nil
	}
	return answer.Value, answer.Source != cache.Miss, nil
}

// Run reads the configuration files again when they change, until ctx is done.
func (s *Store) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	for _, f := range s.files {
		watching.Go(func() {
			filewatch.Watch(ctx, s.cfg.Log, f.path, f.lastContent(), func([]byte, error) { s.reloadFile(ctx, f) })
		})
	}
	err := s.helpers.Run(ctx)
	watching.Wait()
	return err
}

// reloadFile reads a configuration file again. If this fails, it logs the error and keeps the last valid content.
func (s *Store) reloadFile(ctx context.Context, f *file) {
	changed, err := f.readChanges()
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.lastContent() == nil: // the file is optional
	case err != nil:
		s.cfg.Log.ErrorContext(ctx, "docker configuration not applied, keeping its last valid content",
			"path", f.path, "error", err)
	case changed:
		s.cfg.Log.InfoContext(ctx, "read changed docker configuration", "path", f.path)
		s.helpers.ForgetFailures() // first, so that retries after Changed call the helpers again
		s.cfg.Changed()
	}
}

func (f *file) readChanges() (changed bool, err error) {
	content, err := os.ReadFile(f.path)
	if err != nil {
		return false, fmt.Errorf("read docker configuration: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes.Equal(content, f.content) {
		return false, nil
	}
	config, err := parseConfig(content)
	if err != nil {
		return false, fault.New(fault.Invalid, "read %s: %w", f.path, err)
	}
	f.content = content
	f.config = config
	return true, nil
}

func (f *file) lastContent() []byte {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.content
}
