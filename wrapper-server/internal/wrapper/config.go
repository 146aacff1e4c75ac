// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Config is the wrapper server's settings. The flags are Porch's, since its pod
// templates give them; everything has a variable too.
type Config struct {
	// Port is where callers connect.
	Port int `default:"9446"`
	// MaxRequestBodySize bounds requests and responses, in bytes.
	MaxRequestBodySize int `split_words:"true" default:"6291456"`
	// FlattenLog puts each log on one line.
	FlattenLog bool `split_words:"true"`
	// Queue is how many evaluations may wait for their turn.
	Queue int `default:"100"`
	// MaxEvaluationTime is how long an evaluation may take from when its request was read,
	// waiting included; 0 is any time. A caller's shorter deadline comes first.
	MaxEvaluationTime time.Duration `split_words:"true" default:"5m"`
	// Network allows the function to use the network.
	Network bool
	function.Settings
	function.Confinement

	TLS       TLS
	Serve     serve.Config
	Telemetry telemetry.Config

	// Shared are directories that the function may write to as in a container of its own, such as /tmp. They are emptied:
	// nothing else may use them.
	Shared []string `ignored:"true"`
	// Entrypoint is the function's command line.
	Entrypoint []string `ignored:"true"`
}

// flagNames are the settings that flags set too.
var flagNames = map[string]string{
	"Port": "--port", "MaxRequestBodySize": "--max-request-body-size",
	"FlattenLog": "--flatten-log", "Telemetry.LogVerbosity": "--verbosity",
}

// LoadConfig returns the settings of a command line, on top of those of the
// environment. Help and mistakes go to w.
func LoadConfig(args []string, w io.Writer) (Config, error) {
	var cfg Config
	if err := config.Fill(&cfg); err != nil {
		return Config{}, err
	}
	flags := flag.NewFlagSet("wrapper-server", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.IntVar(&cfg.Port, "port", cfg.Port, "port to serve on")
	flags.IntVar(&cfg.MaxRequestBodySize, "max-request-body-size", cfg.MaxRequestBodySize,
		"largest request and response, in bytes")
	verbosity := &cfg.Telemetry.LogVerbosity
	flags.IntVar(verbosity, "verbosity", *verbosity, "log verbosity, 0 (errors) to 5 (everything)")
	flags.BoolVar(&cfg.FlattenLog, "flatten-log", cfg.FlattenLog,
		"put each function log on one line, with | between its lines")
	flags.Usage = func() {
		_, _ = fmt.Fprintf(w, "usage: wrapper-server [FLAG]... -- ENTRYPOINT [ARG]...\n       wrapper-server install DIR\n")
		flags.PrintDefaults()
		_, _ = fmt.Fprintln(w)
		config.Help(w, new(Config), nil)
	}
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	cfg.Entrypoint = flags.Args()
	if len(cfg.Entrypoint) == 0 {
		return Config{}, errors.New("no entrypoint: give the function's command line after --")
	}
	return cfg, config.Rename(cfg.Validate(), name)
}

// name is what a user calls a setting: its flag, or else its variable.
func name(field string) string {
	if f, ok := flagNames[field]; ok {
		return f
	}
	return config.Variable(field)
}

// Validate checks the settings.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Port > 0 && c.Port < 1<<16, "Port", c.Port, "1 to 65535")
	limits := function.Limits{MessageBytes: c.MaxRequestBodySize, LogBytes: c.MaxLogBytes}
	limits.Check(&checks, "MaxRequestBodySize", "MaxLogBytes")
	checks.That(c.Queue >= 0, "Queue", c.Queue, "0 or more")
	checks.That(c.MaxEvaluationTime >= 0, "MaxEvaluationTime", c.MaxEvaluationTime, "zero or more")
	function.CheckSettings(&checks, "", c.Settings)
	function.CheckConfinement(&checks, c.Confinement)
	c.TLS.check(&checks)
	checks.Within("Serve", c.Serve.Validate())
	checks.Within("Telemetry", c.Telemetry.Validate())
	return checks.Err()
}
