# Berth. `make help` lists the targets; each is one line of what it does.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VERSION ?= dev
# Where images and the end-to-end tests run: local (hack/cluster), existing (the
# current kube context) or kind.
CLUSTER ?= local
export VERSION CLUSTER

# Tools and downloads are kept outside the checkout, by version.
export BERTH_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/berth
TOOLS := $(BERTH_CACHE)/tools/$(shell cat hack/tools/go.sum hack/tools/golangci-lint/go.sum hack/tools/golangci-lint/main.go | sha256sum | cut -c1-16)
CONTROLLER_GEN := $(TOOLS)/controller-gen
KUSTOMIZE      := $(TOOLS)/kustomize
CRD_REF_DOCS   := $(TOOLS)/crd-ref-docs
GOLANGCI_LINT  := $(TOOLS)/golangci-lint

MODULES := . hack/cluster hack/image hack/tools
GO_BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/berth-dev/berth/version.Version=$(VERSION)"

##@ Every day

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: quickstart
quickstart: ## Bring up a cluster, install Berth, and use a session through MCP.
	go run ./test/quickstart

.PHONY: build
build: ## Build the binaries into bin/.
	$(GO_BUILD) -o bin/berth-controller ./cmd/controller
	$(GO_BUILD) -o bin/berth-gateway ./cmd/gateway
	$(GO_BUILD) -o bin/berth-agent ./sandbox-agent
	$(GO_BUILD) -o bin/kubectl-berth ./cmd/kubectl-berth

.PHONY: clean
clean: ## Remove what the targets made in this checkout (not the caches).
	rm -rf bin dist hack/bin

##@ Code

.PHONY: generate
generate: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Generate deep copies, CRDs, apply configurations, RBAC and docs/api.md.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1
	$(CONTROLLER_GEN) applyconfiguration:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/v1alpha1 output:crd:dir=config/crd
	go -C hack/tools run ./crdtrim $(CURDIR)/config/crd podTemplate egressRules
	$(CONTROLLER_GEN) rbac:roleName=berth-controller paths=./controllers/... output:rbac:dir=config/rbac/controller
	$(CONTROLLER_GEN) rbac:roleName=berth-gateway paths=./gateway/... output:rbac:dir=config/rbac/gateway
	$(CRD_REF_DOCS) --log-level=ERROR --source-path=api/v1alpha1 --config=hack/tools/crd-ref-docs.yaml --renderer=markdown --output-path=docs/api.md

.PHONY: format
format: $(GOLANGCI_LINT) ## Format all Go code.
	@for module in $(MODULES); do (cd $$module && $(GOLANGCI_LINT) fmt --config=$(CURDIR)/.golangci.yml); done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Lint every module, import walls and API conventions included.
	@for module in $(MODULES); do echo "lint: $$module"; (cd $$module && $(GOLANGCI_LINT) run --config=$(CURDIR)/.golangci.yml ./...); done

.PHONY: verify
verify: ## Generate, format and lint; fail if that changed a file.
	hack/verify $(MAKE)

##@ Tests

.PHONY: test
test: verify test-unit test-integration test-e2e ## All of them, in this order.

.PHONY: test-unit
test-unit: ## Unit tests of every module, with the race detector.
	go test -race $$(go list ./... | grep -v -e /test/integration -e /test/e2e -e /test/bench)
	go -C hack/cluster test -race ./...
	go -C hack/image test -race ./...
	go -C hack/tools test -race ./...
	CGO_ENABLED=0 go -C hack/tools/golangci-lint test ./...

.PHONY: test-integration
test-integration: $(if $(KUBEBUILDER_ASSETS),,hack/bin/cluster) ## Controllers and admission against a real API server (envtest).
	KUBEBUILDER_ASSETS="$${KUBEBUILDER_ASSETS:-$$(hack/bin/cluster assets)}" go test -race -timeout=20m ./test/integration/...

.PHONY: test-e2e
test-e2e: images ## Real pods on a real cluster.
	go test -timeout=30m -v ./test/e2e/...

.PHONY: bench
bench: images ## Measure against the goals; writes docs/performance.md and bench.json.
	go run ./test/bench

##@ Cluster and installation

hack/bin/cluster: FORCE
	@go -C hack/cluster build -o $(CURDIR)/$@ .

.PHONY: cluster-up
cluster-up: hack/bin/cluster ## Start a real Kubernetes on this machine.
	hack/bin/cluster up

.PHONY: cluster-down
cluster-down: hack/bin/cluster ## Stop it, leaving nothing behind.
	hack/bin/cluster down

.PHONY: images
images: ## Build the images as tars into dist/images.
	go -C hack/image run . --version=$(VERSION) --output=$(CURDIR)/dist/images

.PHONY: install-manifest
install-manifest: $(KUSTOMIZE) ## Write dist/install.yaml: all of Berth in one file.
	@mkdir -p dist
	$(KUSTOMIZE) build config/default | sed -E 's,(image: ghcr.io/berth-dev/[a-z-]+):dev$$,\1:$(VERSION),' > dist/install.yaml

# The kinds first: kubectl looks up every kind of a file before it applies any.
.PHONY: install
install: install-manifest ## Install Berth into the current kube context.
	kubectl apply --server-side -k config/crd
	kubectl wait --for=condition=Established -k config/crd
	kubectl apply --server-side -f dist/install.yaml

.PHONY: uninstall
uninstall: install-manifest ## Remove Berth, all sandboxes and their namespace with it.
	kubectl delete --ignore-not-found -f dist/install.yaml

##@ Tools (built once per version into the cache)

$(CONTROLLER_GEN): ; @$(call build-tool,hack/tools,sigs.k8s.io/controller-tools/cmd/controller-gen)
$(KUSTOMIZE): ; @$(call build-tool,hack/tools,sigs.k8s.io/kustomize/kustomize/v5)
$(CRD_REF_DOCS): ; @$(call build-tool,hack/tools,github.com/elastic/crd-ref-docs)
$(GOLANGCI_LINT): ; @$(call build-tool,hack/tools/golangci-lint,.)

# $(call build-tool,MODULE,PACKAGE) builds the target of the rule. It appears
# under its name only when it is whole.
define build-tool
	echo "building $(@F) into $(@D)"; mkdir -p $(@D)
	CGO_ENABLED=0 go -C $(1) build -o $@.new $(2) && mv $@.new $@
endef

.PHONY: FORCE
FORCE:
