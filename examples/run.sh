#!/usr/bin/env bash
# Starts function-runner with the catalog functions as local binaries, and with sandboxes for all
# other images where bubblewrap works (no Kubernetes, no containers), renders the examples through it, and stops it again, or with --keep
# keeps it running until it is interrupted.
#
#   PORT   its port, by default 9445 with --keep, and a free port otherwise
#   BUILD  the directory of `make build` and `make functions`, by default .build
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../.build}
keep=${1:-}

# taken PORT reports whether a server uses the port already.
taken() { (exec 3<>"/dev/tcp/localhost/$1") 2>/dev/null; }

if [[ -n ${PORT:-} || $keep == --keep ]]; then
  port=${PORT:-9445}
  if taken "$port"; then
    echo "port $port is taken: stop the server on it, or choose another one: make run PORT=$((port + 1))" >&2
    exit 1
  fi
else
  port=$((20000 + RANDOM % 10000))
  while taken "$port"; do port=$((port + 1)); done
fi

unset FNR_ADDRESS # fnctl's for another gateway, by its earlier name: function-runner rejects it
export FNR_TELEMETRY_METRICS_ADDRESS=${FNR_TELEMETRY_METRICS_ADDRESS:-off}
export FNR_TELEMETRY_LOG_FORMAT=text FNR_SERVE_DRAIN_DELAY=0s FNR_SANDBOX=${FNR_SANDBOX:-auto}
"$build/bin/function-runner" --port="$port" --disable-runtimes=pod \
  --functions="$build/functions" --config="$build/functions/config.yaml" --log-level="${LOG_LEVEL:-1}" &
runner=$!
trap 'kill "$runner" 2>/dev/null || true; wait "$runner" 2>/dev/null || true' EXIT

# The wrapper server's binary is a health probe too, when it is called by that name.
ln -sf wrapper-server "$build/bin/grpc-health-probe"
for ((i = 0; ; i++)); do
  answers=
  "$build/bin/grpc-health-probe" -addr "localhost:$port" 2>/dev/null && answers=yes
  # If function-runner has ended, the answer came from another server.
  kill -0 "$runner" 2>/dev/null || { echo "function-runner did not start: see above" >&2; exit 1; }
  [[ -z $answers ]] || break
  ((i < 100)) || { echo "function-runner does not answer on port $port" >&2; exit 1; }
  sleep 0.1
done

FNCTL="$build/bin/fnctl" FNCTL_ADDRESS="localhost:$port" "$here/demo.sh"

if [[ $keep == --keep ]]; then
  echo
  echo "Serving on localhost:$port. Try: .build/bin/fnctl render --diff --output stdout examples/web-application"
  echo "Stop with Ctrl-C."
  trap 'kill "$runner" 2>/dev/null || true' INT TERM
  wait "$runner" || true
fi
