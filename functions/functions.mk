# Builds the bundled catalog functions. Included by the root Makefile.

FUNCTIONS_DIR ?= $(CURDIR)/.build/functions

# Each module here has its own build list, so that a bundled function is the program that
# its authors tested: a workspace would merge the lists. PLATFORM_ENV selects another
# platform than this machine's.
BUILD_FUNCTIONS = GOWORK=off CGO_ENABLED=0 $(PLATFORM_ENV) go build -trimpath -ldflags='-s -w' -o $(FUNCTIONS_DIR)/ tool

.PHONY: functions
functions: ## Build the catalog functions for the exec evaluator
	cd functions && $(BUILD_FUNCTIONS)
	cd functions/apply-setters && $(BUILD_FUNCTIONS)
	cp functions/config.yaml $(FUNCTIONS_DIR)/config.yaml

# .ko.yaml names the platform of images, independent of this machine's. If both are the
# same, so are the functions.
IMAGE_PLATFORM      := $(shell sed -n 's/^defaultPlatforms: \[\([^,]*\)\]$$/\1/p' .ko.yaml)
HOST_PLATFORM       := $(shell go env GOOS)/$(shell go env GOARCH)
IMAGE_PLATFORM_ENV  := GOOS=$(firstword $(subst /, ,$(IMAGE_PLATFORM))) GOARCH=$(lastword $(subst /, ,$(IMAGE_PLATFORM)))
IMAGE_FUNCTIONS_DIR := $(FUNCTIONS_DIR)$(if $(filter $(HOST_PLATFORM),$(IMAGE_PLATFORM)),,-for-images)

# The files that ko adds to images, at /var/run/ko: the functions, and for exec probes
# the wrapper server, which is a health probe when it is called by that name.
.PHONY: kodata
kodata: ## Put the functions into the directories from which ko adds them to images
	@test -n "$(IMAGE_PLATFORM)" || { echo ".ko.yaml must name one platform: the functions are built for one"; exit 1; }
	@$(MAKE) --no-print-directory functions PLATFORM_ENV="$(IMAGE_PLATFORM_ENV)" FUNCTIONS_DIR=$(IMAGE_FUNCTIONS_DIR)
	cd wrapper-server && GOWORK=off CGO_ENABLED=0 $(IMAGE_PLATFORM_ENV) go build -trimpath -ldflags='-s -w' -o $(CURDIR)/.build/kodata/grpc-health-probe .
	@for s in gateway function-runner; do \
	  rm -rf services/$$s/kodata; mkdir -p services/$$s/kodata/functions; \
	  find $(IMAGE_FUNCTIONS_DIR) -type f ! -name config.yaml -exec cp -t services/$$s/kodata/functions/ {} + && \
	  cp functions/config.yaml services/$$s/kodata/ || exit 1; done
	@cp .build/kodata/grpc-health-probe services/function-runner/kodata/
