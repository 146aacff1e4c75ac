// SPDX-License-Identifier: Apache-2.0

// Package rendercache stores responses of functions on disk, for the flag --cache. A render then runs only
// functions whose image or input has changed. Any number of processes may share the directory of the cache.
package rendercache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

// maxBytes is the maximum size of the cache on disk after a render, 1 GiB.
const maxBytes = 1 << 30

// staleAfter is the age at which a temporary cache file is removed as a leftover of a killed process.
const staleAfter = time.Hour

// Fingerprint identifies everything that affects a function's output besides its input, such as the digest of the
// image. If it is empty, the output is not cached.
type Fingerprint func(ctx context.Context, image, tag string) (string, error)

// Cache is an evaluator that reuses the stored responses of functions.
type Cache struct {
	pipeline.Evaluator

	fingerprint Fingerprint
	dir         string
	max         int64
}

// Open opens the cache in the user's directory. For a missing response, the cache calls next. Callers must close it.
func Open(fingerprint Fingerprint, next pipeline.Evaluator) (*Cache, error) {
	parent, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("--cache: %w", err)
	}
	return open(filepath.Join(parent, "function-runner", "renders"), maxBytes, fingerprint, next)
}

func open(dir string, maxSize int64, fingerprint Fingerprint, next pipeline.Evaluator) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--cache: %w", err)
	}
	return &Cache{Evaluator: next, fingerprint: fingerprint, dir: dir, max: maxSize}, nil
}

// Evaluate implements [pipeline.Evaluator]. If the cache cannot be read or written, the function runs without it.
func (c *Cache) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	fingerprint, err := c.fingerprint(ctx, req.Image, req.Tag)
	if err != nil || fingerprint == "" {
		return c.Evaluator.Evaluate(ctx, req) // the evaluator reports the error
	}
	input := sha256.Sum256(req.ResourceList)
	key := sha256.Sum256(append([]byte(fingerprint), input[:]...))
	name := filepath.Join(c.dir, hex.EncodeToString(key[:]))
	if resp, ok := read(name); ok {
		now := time.Now()
		_ = os.Chtimes(name, now, now) // Close removes the least recently used entries
		return resp, nil
	}
	resp, err := c.Evaluator.Evaluate(ctx, req)
	if err != nil {
		return resp, err
	}
	// Store the response only if the tag still refers to the same image as before the evaluation.
	if after, err := c.fingerprint(ctx, req.Image, req.Tag); err == nil && after == fingerprint {
		c.write(name, resp)
	}
	return resp, nil
}

// read returns the response in a cache file. ok is true unless the file is missing or damaged. The file begins with a
// checksum of the rest of the file. The rest is the length of the ResourceList, the ResourceList and the log.
func read(name string) (resp pipeline.Response, ok bool) {
	data, err := os.ReadFile(name)
	if err != nil || len(data) < sha256.Size+8 {
		return resp, false
	}
	sum, content := data[:sha256.Size], data[sha256.Size:]
	if actual := sha256.Sum256(content); !slices.Equal(sum, actual[:]) {
		return resp, false
	}
	length := binary.BigEndian.Uint64(content)
	content = content[8:]
	return pipeline.Response{ResourceList: content[:length], Log: content[length:]}, true
}

// write stores a response in a cache file. Other processes see the file as a whole or not at all.
func (c *Cache) write(name string, resp pipeline.Response) {
	content := binary.BigEndian.AppendUint64(nil, uint64(len(resp.ResourceList)))
	content = slices.Concat(content, resp.ResourceList, resp.Log)
	sum := sha256.Sum256(content)
	file, err := os.CreateTemp(c.dir, temporary)
	if err != nil {
		return
	}
	_, err = file.Write(append(sum[:], content...))
	if err = cmp.Or(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
}

// temporary is the name pattern of cache files that a process is still writing.
const temporary = "new-*"

// Close removes the least recently used cache entries until the remaining entries need at most c.max bytes.
func (c *Cache) Close() error {
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("--cache: %w", err)
	}
	var entries []fs.FileInfo
	total := int64(0)
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			continue // another process removed it
		}
		if strings.HasPrefix(file.Name(), "new-") {
			if time.Since(info.ModTime()) > staleAfter {
				_ = os.Remove(filepath.Join(c.dir, file.Name()))
			}
			continue
		}
		entries, total = append(entries, info), total+info.Size()
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, entry := range entries {
		if total <= c.max {
			break
		}
		_ = os.Remove(filepath.Join(c.dir, entry.Name())) // another process may have removed it
		total -= entry.Size()
	}
	return nil
}
