#!/usr/bin/env bash
# Starts function-runner with the catalog functions as local binaries, and with sandboxes for all
# other images where a launcher of sandboxes works (no Kubernetes, no containers), renders the examples through it, and
# stops it again, or with --keep keeps it running until it is interrupted. A registry on loopback has the
# images of the example functions.
#
#   PORT    its port, by default 9445 with --keep, and a free port otherwise
#   BUILD   the directory of `make build` and `make functions`, by default .build
#   NODEJS  a directory into which Debian's package nodejs is unpacked, for machines without it
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

log=$(mktemp)
images= runner=
# shellcheck disable=SC2329 # the trap calls it
finish() {
  for pid in $runner $images; do kill "$pid" 2>/dev/null || true; done
  for pid in $runner $images; do wait "$pid" 2>/dev/null || true; done
  rm -f "$log"
}
trap finish EXIT

# The functions of any-image, and where their registry is. Sandboxes need Linux.
skipped="its functions run in sandboxes, which are off or need another system"
if [[ $(uname -s) == Linux && -x $build/examples/functions && ${FNR_SANDBOX:-auto} != off ]]; then
  packages=
  command -v node >/dev/null || ! [[ -d ${NODEJS:-} ]] || packages=$NODEJS
  exec {address}< <(exec "$build/examples/functions" --dir="$build/examples" --team="$build/examples/team" \
    --packages="$packages" 2>"$log")
  images=$!
  if read -r registry <&"$address"; then
    skipped=
    mirrors=${FNR_MIRRORS:-} insecure=${FNR_INSECURE_REGISTRIES:-}
    export FNR_MIRRORS="${mirrors:+$mirrors,}functions.example.com=$registry"
    export FNR_INSECURE_REGISTRIES="${insecure:+$insecure,}$registry"
  else
    skipped=$(<"$log")
  fi
fi

# Loopback only: anyone who reaches the port may run functions here.
export FNR_ADDRESS=localhost:$port
export FNR_TELEMETRY_METRICS_ADDRESS=${FNR_TELEMETRY_METRICS_ADDRESS:-off}
export FNR_TELEMETRY_LOG_FORMAT=text FNR_SERVE_DRAIN_DELAY=0s FNR_SANDBOX=${FNR_SANDBOX:-auto}
# The status page, unless its port is taken.
if [[ $keep == --keep ]] && ! taken 9447; then
  export FNR_STATUS_ADDRESS=${FNR_STATUS_ADDRESS-localhost:9447}
fi
"$build/bin/function-runner" --disable-runtimes=pod \
  --functions="$build/functions" --config="$build/functions/config.yaml" --log-level="${LOG_LEVEL:-1}" \
  2> >(exec tee -i "$log" >&2) &
runner=$!

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

# The log has the reason.
! grep -q 'no sandbox on this machine' "$log" ||
  skipped="its functions run in sandboxes, which do not work here: install the package bubblewrap, or see the log above"
FNCTL="$build/bin/fnctl" FNCTL_ADDRESS="localhost:$port" SKIPPED=$skipped "$here/demo.sh"

if [[ $keep == --keep ]]; then
  echo
  echo "Serving on localhost:$port. Try: .build/bin/fnctl render --diff --output stdout examples/web-application"
  [[ -z ${FNR_STATUS_ADDRESS:-} ]] || echo "Status page: http://$FNR_STATUS_ADDRESS"
  echo "In the terminal: .build/bin/fnctl top"
  echo "Stop with Ctrl-C."
  stopped=
  trap 'stopped=yes; kill "$runner" 2>/dev/null || true' INT TERM
  wait "$runner" || [[ -n $stopped ]] || { echo "function-runner has ended: see above" >&2; exit 1; }
fi
