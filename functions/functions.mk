# Builds the bundled catalog functions. Included by the root Makefile.

FUNCTIONS_DIR ?= $(CURDIR)/.build/functions

# Each module here has a build list of its own, so that a bundled function is the
# program that its authors tested: a workspace would merge the lists. FOR names another
# platform than this machine's.
BUILD_FUNCTIONS = GOWORK=off CGO_ENABLED=0 $(FOR) $(QUICK) go build -trimpath -ldflags='-s -w' -o $(FUNCTIONS_DIR)/ tool

.PHONY: functions
functions: ## Build the catalog functions for the exec evaluator
	cd functions && $(BUILD_FUNCTIONS)
	cd functions/apply-setters && $(BUILD_FUNCTIONS)
	cp functions/config.yaml $(FUNCTIONS_DIR)/config.yaml

# The platform of images is the one that .ko.yaml names, whatever this machine's is. Where
# both are the same, so are the functions.
PLATFORM       := $(shell sed -n 's/^defaultPlatforms: \[\([^,]*\)\]$$/\1/p' .ko.yaml)
HERE           := $(shell go env GOOS)/$(shell go env GOARCH)
FOR_IMAGES     := GOOS=$(firstword $(subst /, ,$(PLATFORM))) GOARCH=$(lastword $(subst /, ,$(PLATFORM)))
FOR_IMAGES_DIR := $(FUNCTIONS_DIR)$(if $(filter $(HERE),$(PLATFORM)),,-for-images)

# What ko takes along into images, at /var/run/ko: the functions, and for exec probes
# the wrapper server, which is a health probe when it is called by that name.
.PHONY: kodata
kodata: ## Put them where ko finds them for images
	@test -n "$(PLATFORM)" || { echo ".ko.yaml has to name one platform: the functions are built for one"; exit 1; }
	@$(MAKE) --no-print-directory functions FOR="$(FOR_IMAGES)" FUNCTIONS_DIR=$(FOR_IMAGES_DIR)
	cd wrapper-server && GOWORK=off CGO_ENABLED=0 $(FOR_IMAGES) go build -trimpath -ldflags='-s -w' -o $(CURDIR)/.build/kodata/grpc-health-probe .
	@for s in gateway function-runner; do \
	  rm -rf services/$$s/kodata; mkdir -p services/$$s/kodata/functions; \
	  find $(FOR_IMAGES_DIR) -type f ! -name config.yaml -exec cp {} services/$$s/kodata/functions/ \; ; \
	  cp functions/config.yaml services/$$s/kodata/; done
	@cp .build/kodata/grpc-health-probe services/function-runner/kodata/
