// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/cacheserver"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

const (
	// maxCacheConnections bounds the connections to the server of the result cache, and the values in memory
	// that are being read.
	maxCacheConnections = 8
	// cacheWriters is how many results are written to it at a time.
	cacheWriters = 2
)

// newTier returns the second tier of the result cache, and its tasks; nil if there is none.
func newTier(cfg Config, frame program.Frame) (*resultcache.Tier, []serve.Task, error) {
	c := cfg.ResultCache
	if c.Server == "" {
		return nil, nil, nil
	}
	address, err := cacheserver.ParseAddress(c.Server)
	if err != nil {
		return nil, nil, err
	}
	key, err := readKey(c.KeyFile)
	if err != nil {
		return nil, nil, err
	}
	client := cacheserver.New(cacheserver.Config{
		Address: address, PasswordFile: c.PasswordFile, CAFile: c.CAFile,
		MaxConnections: maxCacheConnections, MaxValueBytes: resultcache.MaxSealedBytes(cfg.MaxMessageBytes),
	})
	tier, err := resultcache.NewTier(resultcache.TierConfig{
		Server: client, Key: key, TTL: c.TTL, MaxResponseBytes: cfg.MaxMessageBytes,
		Log: frame.Telemetry.Log, Meters: frame.Telemetry.Meters,
	})
	if err != nil {
		return nil, nil, err
	}
	if address.Plaintext {
		frame.Telemetry.Log.Warn("connections to the result cache server are not encrypted: "+
			"its password, if there is one, can be read on the network", "server", address.HostPort)
	}
	tasks := []serve.Task{func(ctx context.Context) error {
		<-ctx.Done()
		client.Close()
		return nil
	}}
	for range cacheWriters {
		tasks = append(tasks, tier.Run)
	}
	return tier, tasks, nil
}

// readKey reads the key that gateways share. NewTier checks its length.
func readKey(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of the result cache: %w", err)
	}
	defer func() { _ = file.Close() }()
	key, err := io.ReadAll(io.LimitReader(file, 2*resultcache.SealKeyBytes))
	if err != nil {
		return nil, fmt.Errorf("read the key of the result cache: %w", err)
	}
	return key, nil
}
