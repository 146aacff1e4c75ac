# Builds the bundled catalog functions. Included by the root Makefile.

FUNCTIONS_DIR ?= $(CURDIR)/.build/functions

# Each module here has a build list of its own, so that a bundled function is the
# program that its authors tested: a workspace would merge the lists.
BUILD_FUNCTIONS = GOWORK=off CGO_ENABLED=0 $(QUICK) go build -trimpath -ldflags='-s -w' -o $(FUNCTIONS_DIR)/ tool

.PHONY: functions
functions: ## Build the catalog functions for the exec evaluator
	cd functions && $(BUILD_FUNCTIONS)
	cd functions/apply-setters && $(BUILD_FUNCTIONS)
	cp functions/config.yaml $(FUNCTIONS_DIR)/config.yaml

# What ko takes along into images, at /var/run/ko: the functions, and for exec probes
# the wrapper server, which is a health probe when it is called by that name.
.PHONY: kodata
kodata: functions ## Put them where ko finds them for images
	cd wrapper-server && GOWORK=off CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o $(CURDIR)/.build/kodata/grpc-health-probe .
	@for s in gateway function-runner; do \
	  rm -rf services/$$s/kodata; mkdir -p services/$$s/kodata/functions; \
	  find $(FUNCTIONS_DIR) -type f ! -name config.yaml -exec cp -t services/$$s/kodata/functions {} +; \
	  cp functions/config.yaml services/$$s/kodata/; done
	@cp .build/kodata/grpc-health-probe services/function-runner/kodata/
