// SPDX-License-Identifier: Apache-2.0

package cacheconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// Config configures a File.
type Config struct {
	// Path is the path of the pod cache configuration. The file may be missing.
	Path string
	// DefaultImagePrefix is the prefix of image names without a slash.
	DefaultImagePrefix string
	// Changed is called with the settings of all functions after each change of the file. The key is [imagename.Name.Key].
	Changed func(map[string]Entry)
	Log     *slog.Logger
}

// File watches the pod cache configuration, a YAML file with settings of functions. Use [Open] to create it.
type File struct {
	config  Config
	content []byte
	entries []Entry
}

// Open reads the pod cache configuration. A missing file counts as empty. Parse errors contain the line number.
func Open(config Config) (*File, error) {
	f := &File{config: config}
	content, err := os.ReadFile(config.Path)
	if errors.Is(err, fs.ErrNotExist) {
		config.Log.Info("there is no pod cache configuration: functions get their pods when they are used",
			"file", config.Path)
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pod cache configuration: %w", err)
	}
	f.content = content
	f.entries, err = f.parse(content)
	return f, err
}

// parse parses the content of the file, completes image names, and logs warnings.
func (f *File) parse(content []byte) ([]Entry, error) {
	entries, warnings, err := Parse(content, f.config.DefaultImagePrefix)
	if err != nil {
		return nil, fmt.Errorf("pod cache configuration %s: %w", f.config.Path, err)
	}
	for _, w := range warnings {
		f.config.Log.Warn("pod cache configuration", "file", f.config.Path, "warning", w)
	}
	return entries, nil
}

// Settings returns the settings of all functions in the file. The key is [imagename.Name.Key].
func (f *File) Settings() map[string]Entry {
	settings := make(map[string]Entry, len(f.entries))
	for _, e := range f.entries {
		name, err := imagename.Parse(e.Image, f.config.DefaultImagePrefix)
		if err != nil {
			continue // cannot happen: parsed names are valid
		}
		settings[name.Key()] = e
	}
	return settings
}

// Run reloads the file after each change, and calls Config.Changed with the new settings, until ctx is done.
func (f *File) Run(ctx context.Context) error {
	const what = "pod cache configuration"
	filewatch.Follow(ctx, f.config.Log, what, f.config.Path, f.content, f.parse, func(entries []Entry) {
		f.entries = entries
		f.config.Changed(f.Settings())
		f.config.Log.InfoContext(ctx, "pod cache configuration applied", "file", f.config.Path, "functions", len(entries))
	})
	return nil
}
