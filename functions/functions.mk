# Builds the bundled catalog functions. Included by the root Makefile.

FUNCTIONS_DIR ?= $(CURDIR)/.build/functions

# Each module here has a build list of its own, so that a bundled function is the
# program that its authors tested: a workspace would merge the lists.
BUILD_FUNCTIONS = GOWORK=off CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o $(FUNCTIONS_DIR)/ tool

.PHONY: functions
functions: ## Build the catalog functions for the exec evaluator
	cd functions && $(BUILD_FUNCTIONS)
	cd functions/apply-setters && $(BUILD_FUNCTIONS)
	cp functions/config.yaml $(FUNCTIONS_DIR)/config.yaml
