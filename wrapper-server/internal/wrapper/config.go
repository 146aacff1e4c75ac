// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Config configures the wrapper server. Only flags set its fields. Environment variables must not configure the server,
// because a container's environment contains variables of the function's image, which the server does not trust.
type Config struct {
	// Port is the port for callers.
	Port int
	// MaxRequestBodySize is the maximum size of requests and responses, in bytes.
	MaxRequestBodySize config.Bytes
	// FlattenLog is true if the lines of a function's log are joined into a single line.
	FlattenLog bool
	// MaxEvaluationTime limits the time of an evaluation, which starts when the request has been read, and includes
	// the wait for other evaluations. Zero means no limit. An earlier deadline of the caller takes precedence.
	MaxEvaluationTime time.Duration
	// Network is true if the function may use the network.
	Network bool
	function.Settings
	function.Confinement

	TLS       TLS
	Serve     serve.Config
	Telemetry telemetry.Config

	// Shared contains directories, such as /tmp, to which the function may write while no other evaluation runs. The
	// server empties these directories before and after such an evaluation. Therefore nothing else may use them.
	Shared []string
	// Entrypoint is the function's command line. Env is the function's environment, as KEY=value.
	Entrypoint, Env []string
}

// LoadConfig returns the settings in the command-line arguments args. It uses environ, an environment from [Isolate],
// only for the function's variables and the TLS secret. It prints help to w. The flags port,
// max-request-body-size, verbosity and flatten-log have the same names as in Porch.
func LoadConfig(args, environ []string, w io.Writer) (Config, error) {
	cfg := Config{
		MaxRequestBodySize: 6 << 20,
		Settings:           function.Settings{Prefork: 2},
		Confinement:        function.Confinement{Confine: confine.BestEffort},
		Env:                functionEnv(environ),
	}
	cfg.TLS.Secret = lookup(environ, secretVariable)
	flags := flag.NewFlagSet("wrapper-server", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // callers print the error
	cfg.defineFlags(flags)
	flags.String(environmentFlag, "",
		"variables that the pod sets, in place of those of the image, and the server may use: names, separated by commas")
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprintf(w, "usage: wrapper-server [FLAG]... -- ENTRYPOINT [ARG]...\n       wrapper-server install DIR\n")
			flags.SetOutput(w)
			flags.PrintDefaults()
		}
		return Config{}, err
	}
	cfg.Entrypoint = flags.Args()
	if len(cfg.Entrypoint) == 0 {
		return Config{}, errors.New("no entrypoint: give the function's command line after --")
	}
	return cfg, config.Rename(cfg.Validate(), flagName)
}

func (c *Config) defineFlags(flags *flag.FlagSet) {
	flags.IntVar(&c.Port, "port", 9446, "port to serve on")
	flags.Var(&c.MaxRequestBodySize, "max-request-body-size", "largest request and response, in `bytes` or as 16Mi")
	flags.BoolVar(&c.FlattenLog, "flatten-log", false, "put each function log on one line, with | between its lines")
	flags.DurationVar(&c.MaxEvaluationTime, "max-evaluation-time", 5*time.Minute,
		"how long an evaluation may take; 0 is any time")
	flags.BoolVar(&c.Network, "network", false, "let the function use the network")
	flags.IntVar(&c.Concurrency, "concurrency", c.Concurrency, "functions that run concurrently; 0 is four per processor")
	flags.IntVar(&c.Prefork, "prefork", c.Prefork, "spare processes, 0 (off) to 64")
	flags.StringVar((*string)(&c.Confine), "confine", string(c.Confine),
		"what to do where the kernel cannot confine functions: require (do not start), best-effort or off")
	flags.DurationVar(&c.Serve.DrainDelay, "serve-drain-delay", 5*time.Second,
		"how long it accepts requests after SIGTERM")
	flags.DurationVar(&c.Serve.ShutdownTimeout, "serve-shutdown-timeout", 5*time.Minute,
		"how long requests in flight may take after that")
	flags.IntVar(&c.Telemetry.LogVerbosity, "verbosity", 2, "log verbosity, 0 (errors) to 5 (everything)")
	flags.StringVar(&c.Telemetry.LogFormat, "telemetry-log-format", "auto",
		"json, text, or auto: text on a terminal, JSON elsewhere")
	flags.StringVar(&c.Telemetry.MetricsAddress, "telemetry-metrics-address", ":9464",
		"address that Prometheus scrapes; off for none")
	flags.StringVar(&c.TLS.ID, "tls-id", "",
		"SPIFFE ID of the pod, which it proves by the secret in "+secretVariable+"; empty for no TLS")
	flags.StringVar(&c.TLS.Authorities, "tls-authorities", "", "authorities of callers' certificates, as PEM")
	flags.Func("tls-callers", "SPIFFE IDs of callers, separated by commas", func(ids string) error {
		c.TLS.Callers = strings.Split(ids, ",")
		return nil
	})
}

// flagName returns the flag of a field of Config for errors, such as --serve-drain-delay for "Serve.DrainDelay".
func flagName(field string) string {
	if field == "Telemetry.LogVerbosity" {
		return "--verbosity"
	}
	words := strings.TrimPrefix(config.Variable(field), config.Prefix+"_")
	return "--" + strings.ReplaceAll(strings.ToLower(words), "_", "-")
}

// Validate checks the settings.
func (c *Config) Validate() error {
	var checks config.Checks
	checks.That(c.Port > 0 && c.Port < 1<<16, "Port", c.Port, "1 to 65535")
	function.CheckMessageBytes(&checks, "MaxRequestBodySize", c.MaxRequestBodySize)
	checks.That(c.MaxEvaluationTime >= 0, "MaxEvaluationTime", c.MaxEvaluationTime, "zero or more")
	function.CheckSettings(&checks, "", c.Settings)
	function.CheckConfinement(&checks, c.Confinement)
	c.TLS.checkSettings(&checks)
	checks.Within("Serve", c.Serve.Validate())
	checks.Within("Telemetry", c.Telemetry.Validate())
	return checks.Err()
}
