# Function Runner. `make help` lists what can be done.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

# Each module is built by itself, from its own go.mod, and all are built the same way: what
# one step has compiled, the next one finds in Go's cache, and so does another clone.
# What only a debugger reads takes a tenth of the compiler's time, and no program keeps it.
# (With flags for the linker go test would link again what it has results of.)
same := -trimpath -gcflags=all=-dwarf=false
export GOWORK := off
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out $(same),$(shell go env GOFLAGS)) $(same)

# Not empty where we can have a cluster and registries of our own.
ours     := $(if $(KUBECONFIG),,$(shell [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ] && echo yes))
TEST_BED := $(if $(ours),e2e-teardown e2e-registries)

MODULES := libs services/gateway services/image-resolver services/pod-manager services/function-runner wrapper-server fnctl functions test
WORKSPACE := $(filter-out functions,$(MODULES))
BUILD   := $(CURDIR)/.build

# The modules of the workspace, taken together where that is sooner done.
TOGETHER := $(CURDIR)/go.work
ALL      := $(WORKSPACE:%=./%/...)

# For programs that come and go, memory is cheaper than collecting it: linting takes a
# third less of the processors, compiling a tenth.
QUICK := GOGC=400 GOMEMLIMIT=3GiB

# Tools are built once per version and kept outside the clone.
BUF_VERSION               := v1.73.0
PROTOC_GEN_GO_VERSION     := v1.36.11
PROTOC_GEN_CONNECT_VERSION := v1.21.1
PROTOC_GEN_GRPC_VERSION   := v1.6.0
GOLANGCI_LINT_VERSION     := v2.8.0

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/function-runner
TOOLS := $(CACHE)/tools
BUF                := $(TOOLS)/buf@$(BUF_VERSION)/buf
PROTOC_GEN_GO      := $(TOOLS)/protoc-gen-go@$(PROTOC_GEN_GO_VERSION)/protoc-gen-go
PROTOC_GEN_CONNECT := $(TOOLS)/protoc-gen-connect-go@$(PROTOC_GEN_CONNECT_VERSION)/protoc-gen-connect-go
PROTOC_GEN_GRPC    := $(TOOLS)/protoc-gen-go-grpc@$(PROTOC_GEN_GRPC_VERSION)/protoc-gen-go-grpc
GOLANGCI_LINT      := $(TOOLS)/golangci-lint@$(GOLANGCI_LINT_VERSION)/golangci-lint
PLUGINS            := $(PROTOC_GEN_GO) $(PROTOC_GEN_CONNECT) $(PROTOC_GEN_GRPC)

# tool builds $(1) at $(2) into the folder of its target, which appears only whole.
define tool
	@echo "building $(notdir $@) $(2)"
	@mkdir -p $(TOOLS) && tmp=$$(mktemp -d $(TOOLS)/.build.XXXXXX) && \
	 GOBIN=$$tmp $(QUICK) go install $(1)@$(2) && \
	 mkdir -p $(@D) && mv $$tmp/$(notdir $@) $@ && rmdir $$tmp
endef

$(BUF):
	$(call tool,github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION))
$(PROTOC_GEN_GO):
	$(call tool,google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION))
$(PROTOC_GEN_CONNECT):
	$(call tool,connectrpc.com/connect/cmd/protoc-gen-connect-go,$(PROTOC_GEN_CONNECT_VERSION))
$(PROTOC_GEN_GRPC):
	$(call tool,google.golang.org/grpc/cmd/protoc-gen-go-grpc,$(PROTOC_GEN_GRPC_VERSION))
$(GOLANGCI_LINT):
	$(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))

LINT = $(QUICK) $(GOLANGCI_LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml

# The race detector needs a C compiler. As root on Debian it is installed; without
# one the tests run all the same, and say so. Vetting is the linters' work.
GO_TEST = $(shell command -v gcc >/dev/null && echo "CGO_ENABLED=1 go test -race" || echo "go test") -vet=off

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Start the stack here, render the examples through it, keep serving on 9445
	@examples/run.sh --keep

.PHONY: demo
demo: build ## The same, and stop
	@examples/run.sh

# VERSION is what programs print for --version; without it, Go says what it knows of the commit.
STAMP = $(if $(VERSION),-X=github.com/krm-function-runner/function-runner/libs/version.stamped=$(VERSION))

.PHONY: build
build: functions ## Build all programs into .build/bin
	@mkdir -p $(BUILD)/bin
	@for m in services/function-runner services/gateway fnctl wrapper-server; do \
	  (cd $$m && CGO_ENABLED=0 go build -trimpath -ldflags="-s -w $(STAMP)" -o $(BUILD)/bin/ .); done

##@ Check

# The runtime of each Go program wakes a thread of its every 20 microseconds while it works,
# and a cluster is many such programs: with this much slack (in nanoseconds) for timers, all
# of it takes a fifth less. It is not what functions get, so that tests can tell the two.
UNHURRIED = echo 2000000 2>/dev/null >/proc/$$$$/timerslack_ns || true

# The clusters of tests have the same names in all clones: one run at a time, on a machine.
LOCK  := $(CACHE)/test.lock
ALONE := $(if $(ours),mkdir -p $(CACHE); flock -n $(LOCK) true || echo "waiting: another make test runs on this machine"; flock --close $(LOCK))

# The functions come first: all three use them, and would build them at once.
.PHONY: test
test: prepare functions ## Run everything: on a cluster, and beside that what needs none
	@$(UNHURRIED); $(ALONE) $(MAKE) --no-print-directory --jobs=3 test-cluster test-bed test-here

# What needs no cluster takes the time that the tests on one leave: they wait a lot. Tests
# come when the machine is no longer busy with building: some know what time it is.
in_turn = for target in $(1); do echo "== $$target"; nice $(MAKE) --no-print-directory $$target; done

.PHONY: test-here
test-here:
	@$(call in_turn,check-generate check-proto check-modules lint unit demo)

.PHONY: test-bed
test-bed:
	@$(call in_turn,$(TEST_BED))

# Go runs a test again if a file that it reads has another time than before, as all have in
# a fresh clone. So testdata that nobody has changed gets times by its content.
.PHONY: testdata-times
testdata-times:
	@! git rev-parse --git-dir >/dev/null 2>&1 || { \
	  git ls-files --stage -- ':(glob)**/testdata/**' | grep -vFf <(git ls-files --modified | sed 's/^/\t/') | \
	  while IFS=$$'\t' read -r entry path; do set -- $$entry; touch -h -d "@$$((16#$${2:0:7}))" "$$path"; done; \
	  find $(MODULES) -path '*/testdata*' -type d -exec touch -d @0 {} +; }

.PHONY: unit
unit: prepare testdata-times ## Run the tests that need nothing but this machine
	@failed=; \
	 GOWORK=$(TOGETHER) $(GO_TEST) $(filter-out ./test/...,$(ALL)) || failed=1; \
	 (cd services/pod-manager && CGO_ENABLED=0 go test -vet=off -run 'Simulation|Day' ./internal/pool) || failed=1; \
	 (cd functions && $(GO_TEST) ./...) || failed=1; \
	 (cd test && $(GO_TEST) -count=1 $$(go list ./... | grep -v '/deploy$$')) || failed=1; \
	 (cd test && go test -vet=off -count=1 ./deploy) || failed=1; \
	 test -z "$$failed" # Go does not see that manifests change; nothing races in their tests

# The cluster of make test has a name of its own: a developer's stays as it is. What a run
# that was broken off has left of it goes first.
TEST_CLUSTER := make-test

.PHONY: test-cluster
test-cluster: ## Run the tests on a cluster: that of KUBECONFIG, or our own
ifdef KUBECONFIG
	@$(MAKE) --no-print-directory e2e
else ifdef ours
	@$(MAKE) --no-print-directory CLUSTER=$(TEST_CLUSTER) cluster-down
	@failed=; $(MAKE) --no-print-directory CLUSTER=$(TEST_CLUSTER) e2e || failed=1; \
	 $(MAKE) --no-print-directory CLUSTER=$(TEST_CLUSTER) cluster-down || failed=1; \
	 test -z "$$failed"
else
	@echo "left out: the tests on a cluster and on real registries, which need root on Debian, or KUBECONFIG"
endif

.PHONY: e2e-registries
e2e-registries: ## Test the image-resolver with real registries (Debian's docker-registry)
	cd services/image-resolver && $(GO_TEST) -count=1 -tags e2e -run 'Distribution|Program' ./imageresolver

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters
	@failed=; \
	 GOWORK=$(TOGETHER) $(LINT) $(ALL) || failed=1; \
	 (cd functions && $(LINT) ./...) || failed=1; \
	 test -z "$$failed"

.PHONY: check-generate
check-generate: $(BUF) $(PLUGINS) ## Fail if generated code is not what the protocol buffers say
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && $(GENERATE) --output="$$tmp" && \
	 diff -r "$$tmp/libs/gen" libs/gen || { echo "generated code is stale: run make generate, and commit the result"; exit 1; }

.PHONY: check-proto
check-proto: $(BUF) ## Lint the protocol buffers, and fail if one breaks an earlier commit's
	@$(BUF) lint && $(BUF) format --diff --exit-code proto
	@for c in $$(git rev-list HEAD -- proto); do $(BUF) breaking --against ".git#ref=$$c"; done

.PHONY: check-modules
check-modules: ## Fail if a module does not build by itself, is not tidy, or has versions of its own
	@(cd functions && $(QUICK) go list -export ./... >/dev/null)
	@for m in $(WORKSPACE); do (cd $$m && $(QUICK) go list -export -deps -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' ./...); done | sort -u | \
	 awk '$$2 && seen[$$1]++ {print "modules use different versions of " $$1 ": run make tidy"; bad = 1} END {exit bad}'
	@for m in $(MODULES) functions/apply-setters; do (cd $$m && go mod tidy -diff); done

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 1m)
	@test/fuzz.sh $(MODULES)

.PHONY: bench
bench: build ## Measure what gateway and wrapper-server add to a bare process
	cd test && go run ./overhead

##@ Develop

space := $(subst ,, )
GENERATE = PATH="$(subst $(space),:,$(dir $(PLUGINS))):$$PATH" $(BUF) generate

.PHONY: generate
generate: $(BUF) $(PLUGINS) ## Generate code from the protocol buffers
	@$(GENERATE)

.PHONY: tidy
tidy: ## Tidy all modules, and have all use the same versions
	@GOWORK=$(CURDIR)/go.work go work sync
	@for m in $(MODULES) functions/apply-setters; do (cd $$m && go mod tidy); done

.PHONY: fmt
fmt: $(GOLANGCI_LINT) $(BUF) ## Format all code
	@for m in $(MODULES); do (cd $$m && $(GOLANGCI_LINT) fmt --config $(CURDIR)/.golangci.yml ./...) || failed=1; done; test -z "$$failed"
	@$(BUF) format -w proto

.PHONY: prepare
prepare: ## Install what the tests need, as root on Debian
	@command -v gcc >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends gcc libc6-dev; \
	  else echo "left out: the race detector, which needs gcc"; fi; }

.PHONY: clean
clean: ## Remove what was built here
	rm -rf $(BUILD)

include functions/functions.mk
include test/attack.mk
-include test/cluster.mk
