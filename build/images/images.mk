# Images and downloads of a release, and manifests that use images. Included by the root Makefile.

.PHONY: images
images: ## Build all images with ko and push them to REPO=registry/path (TAG=latest)
	@test -n "$(REPO)" || { echo "REPO is not set: make images REPO=registry.example/path"; exit 1; }
	@$(MAKE) --no-print-directory kodata
	@cd build/images && go run . -root $(CURDIR) -tag $(or $(TAG),latest) \
	 -revision "$$(git rev-parse HEAD 2>/dev/null)" $(REPO)

.PHONY: sign
sign: ## Sign the images in REPO=registry/path at TAG with the private key in the file KEY, as cosign does
	@test -n "$(REPO)" -a -n "$(KEY)" || { echo "REPO or KEY is not set: make sign REPO=registry.example/path TAG=v0.1.0 KEY=key.pem"; exit 1; }
	@cd build/images && go run ./cmd/sign -tag $(or $(TAG),latest) -key $(abspath $(KEY)) $(REPO)

# The files have the time of the commit, so that every build of a commit gives the same archives.
.PHONY: downloads
downloads: ## Build the archives of fnctl and function-runner for VERSION=v0.1.0 into .build/release
	@test -n "$(VERSION)" || { echo "VERSION is not set: make downloads VERSION=v0.1.0"; exit 1; }
	@rm -rf $(BUILD)/release/$(VERSION)
	@cd build/images && go run ./cmd/downloads -root $(CURDIR) -version $(VERSION) \
	 -time $$(git log -1 --format=%ct) $(BUILD)/release/$(VERSION)
	@cat $(BUILD)/release/$(VERSION)/SHA256SUMS

.PHONY: tags
tags: ## Tag this commit as VERSION=v0.1.0, with the modules that `go install` of fnctl needs
	@test -n "$(VERSION)" || { echo "VERSION is not set: make tags VERSION=v0.1.0"; exit 1; }
	@build/tags.sh $(VERSION)

# Sets the values that have a setter in their comment, as `kpt fn render` does.
.PHONY: manifests
manifests: ## Make deploy/ use the images in REPO=registry/path (TAG=latest)
	@test -n "$(REPO)" || { echo "REPO is not set: make manifests REPO=registry.example/path"; exit 1; }
	@sed -i -E -e 's|^(  registry: ).*|\1$(REPO)|' -e 's|^(  tag: ).*|\1$(or $(TAG),latest)|' deploy/setters.yaml
	@grep -rl ' # kpt-set: ' deploy | xargs sed -i -E -e '/\$$\{(registry|tag)\}/ s|: [^ ]+ # kpt-set: (.*)$$|: \1 # kpt-set: \1|' \
	 -e 's|\$$\{registry\}|$(REPO)|' -e 's|\$$\{tag\}|$(or $(TAG),latest)|'
