# Berth. `make help` lists the targets; each is one line of what it does.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VERSION ?= dev
# Where Berth is installed and tested: local (hack/cluster), kind, or existing (the
# current kube context, which can pull or already has the images).
CLUSTER ?= local
export VERSION CLUSTER

# What runs a program where the cluster can be reached, and kubectl there.
IN_CLUSTER := $(if $(filter local,$(CLUSTER)),$(CURDIR)/hack/bin/cluster exec --)
KUBECTL := $(strip $(IN_CLUSTER) kubectl)
IMAGES ?= controller gateway agent sandbox sandbox-small sandbox-busybox sandbox-noshell

# Tools and downloads are kept outside the checkout, by version.
export BERTH_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/berth
TOOLS := $(BERTH_CACHE)/tools/$(shell cat hack/tools/go.sum hack/tools/golangci-lint/go.sum hack/tools/golangci-lint/main.go | sha256sum | cut -c1-16)
CONTROLLER_GEN := $(TOOLS)/controller-gen
KUSTOMIZE      := $(TOOLS)/kustomize
CRD_REF_DOCS   := $(TOOLS)/crd-ref-docs
GOLANGCI_LINT  := $(TOOLS)/golangci-lint

MODULES := . hack/cluster hack/image hack/tools hack/tools/golangci-lint
# Wherever a program is built with these two, it takes what is compiled for the images.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

##@ Every day

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: quickstart
quickstart: ## Bring up a cluster, install Berth, and use a session through MCP.
	@$(MAKE) cluster-up images load-images install IMAGES="controller gateway agent sandbox"
	@CGO_ENABLED=0 go run -trimpath -exec '$(IN_CLUSTER)' ./test/quickstart -prefix='$(patsubst $(CURDIR)/%,%,$(IN_CLUSTER))'

.PHONY: build
build: ## Build the binaries into bin/.
	$(GO_BUILD) -o bin/berth-controller ./cmd/controller
	$(GO_BUILD) -o bin/berth-gateway ./cmd/gateway
	$(GO_BUILD) -o bin/berth-agent ./sandbox-agent

# Not through `build`: it is to be there in seconds.
.PHONY: dev
dev: ## Serve sessions on this machine without a cluster, to develop against the gateway. No security boundary.
	@$(GO_BUILD) -o bin/berth-gateway ./cmd/gateway
	@$(GO_BUILD) -o bin/berth-agent ./sandbox-agent
	@exec bin/berth-gateway --standalone

.PHONY: clean
clean: ## Remove what the targets made in this checkout (not the caches).
	rm -rf bin dist hack/bin

##@ Code

.PHONY: generate
generate: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Generate deep copies, CRDs, apply configurations, RBAC, docs/api.md and docs/metrics.md.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1
	$(CONTROLLER_GEN) applyconfiguration:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/v1alpha1 output:crd:dir=config/crd
	go -C hack/tools run ./crdtrim $(CURDIR)/config/crd podTemplate egressRules
	$(CONTROLLER_GEN) rbac:roleName=berth-controller paths=./controllers/... output:rbac:dir=config/rbac/controller
	$(CONTROLLER_GEN) rbac:roleName=berth-gateway paths=./gateway/... output:rbac:dir=config/rbac/gateway
	$(CRD_REF_DOCS) --log-level=ERROR --source-path=api/v1alpha1 --config=hack/tools/crd-ref-docs.yaml --renderer=markdown --output-path=docs/api.md
	go -C hack/tools run ./metricsdoc $(CURDIR)/controllers $(CURDIR)/gateway > docs/metrics.md

.PHONY: format
format: $(GOLANGCI_LINT) ## Format all Go code.
	@for module in $(MODULES); do (cd $$module && $(GOLANGCI_LINT) fmt --config=$(CURDIR)/.golangci.yml); done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Lint every module, import walls and API conventions included.
	@failed=0; for module in $(MODULES); do echo "lint: $$module"; (cd $$module && $(GOLANGCI_LINT) run --config=$(CURDIR)/.golangci.yml ./...) || failed=1; done; exit $$failed

.PHONY: verify
verify: ## Generate, format and lint; fail if that changed a file.
	hack/verify $(MAKE)

##@ Tests

.PHONY: test
test: verify test-unit conformance test-integration test-e2e ## All of them, in this order.

# For a test of files that share blocks, which needs root as well.
.PHONY: xfsprogs
xfsprogs:
	@if [ "$$(id -u)" = 0 ] && ! command -v mkfs.xfs >/dev/null && command -v apt-get >/dev/null; then \
		apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends xfsprogs; fi

.PHONY: test-unit
test-unit: xfsprogs ## Unit tests of every module, with the race detector.
	go test -race $$(go list ./... | grep -v -e /test/integration -e /test/e2e -e /test/differential)
	go test -race -count=1 ./test/differential
	go -C hack/cluster test -race ./...
	go -C hack/image test -race ./...
	go -C hack/tools test -race ./...
	CGO_ENABLED=0 go -C hack/tools/golangci-lint test ./...

.PHONY: conformance
conformance: test/conformance/node_modules ## Node's patience, and the official MCP conformance suite with Berth's own tools and with the suite's.
	go test -count=1 -tags=conformance -run='^Test(Node|OnlyWarnings)' ./gateway
	@$(call run-conformance,conformance,tools)
	@$(call run-conformance,conformance$(comma)fixtures,fixtures)

# $(call run-conformance,TAGS,AGAINST) leaves a line for each requirement set, and what failed.
comma := ,
define run-conformance
	go test -v -count=1 -tags=$(1) -run='^TestConformance$$' ./gateway -conformance=$(2) | grep -v -e '^===' -e '^ *--- PASS' -e '^PASS$$' -e '^ok'
endef

test/conformance/node_modules: test/conformance/package-lock.json
	cd test/conformance && npm ci --no-fund --no-audit --loglevel=error # it runs on a Node of its own
	@touch $@

.PHONY: test-integration
test-integration: $(if $(KUBEBUILDER_ASSETS),,hack/bin/cluster) ## Controllers and admission against a real API server (envtest).
	KUBEBUILDER_ASSETS="$${KUBEBUILDER_ASSETS:-$$(hack/bin/cluster assets)}" go test -race -timeout=20m ./test/integration/...

.PHONY: test-e2e
test-e2e: images test/clients/node_modules ## Real pods on a real cluster, started for it.
	@# The S3 server of the tests: the cluster's network may lead to no module proxy.
	CGO_ENABLED=0 go -C hack/tools/versitygw tool -n versitygw > /dev/null
	@$(call in-own-cluster,test,CGO_ENABLED=0 go test -trimpath -count=1 -timeout=40m -v -exec '$(IN_CLUSTER)' ./test/e2e/...)
	$(if $(filter local,$(CLUSTER)),go -C hack/cluster test -count=1 -timeout=40m -tags=e2e ./e2e)

.PHONY: soak
soak: ## 10,000 mixed commands, and commands that write 10 GB, on one agent each: nothing grows. 10,000 new random scripts.
	go test -count=1 -timeout=90m -v ./test/soak -commands=10000 -gigabytes=10
	go test -count=1 -timeout=90m -v ./test/differential -scripts=10000 -sh-scripts=200

.PHONY: nightly
nightly: soak test/conformance/node_modules ## What takes too long for every day: soak, and a command that is silent for longer than Node waits by default.
	go test -count=1 -timeout=15m -v -tags=conformance -run='^TestNode' ./gateway -node-limit=300s -silence=310s

.PHONY: bench
bench: images profiles ## Measure against the goals; writes docs/performance.md and bench.json.
	@$(call in-own-cluster,bench,CGO_ENABLED=0 go run -trimpath -exec '$(IN_CLUSTER)' ./test/bench -profiles=dist/profiles)

# With this GOGC the benchmark collects as seldom as the gateway, which has headroom.
.PHONY: profiles
profiles: ## Profile gateway and agent while they run `true`; writes dist/profiles.
	@mkdir -p dist/profiles
	GOGC=400 CGO_ENABLED=0 go test ./gateway -run='^$$' -bench='^BenchmarkLive$$' -benchtime=10000x \
		-cpuprofile=$(CURDIR)/dist/profiles/gateway.cpu -o dist/profiles/gateway.test
	BERTH_TEST_AGENT_PROFILE=$(CURDIR)/dist/profiles/agent.cpu CGO_ENABLED=0 go test ./sandbox-agent -run='^$$' \
		-bench='^BenchmarkExecTrue$$' -benchtime=10000x -o dist/profiles/agent.test

# $(call in-own-cluster,NAME,COMMAND) leaves the cluster of the quickstart alone.
# With KEEP=1 its own stays up, to look into or to run again.
define in-own-cluster
	export BERTH_CLUSTER=$(1); $(if $(KEEP),,trap '$(MAKE) cluster-down' EXIT;) \
	$(MAKE) cluster-up load-images install; $(2)
endef

test/clients/node_modules: test/clients/package-lock.json
	cd test/clients && npm ci --no-fund --no-audit --loglevel=error # they run on a Node of their own
	@touch $@

##@ Cluster and installation

.PHONY: cluster-up
cluster-up: cluster-up-$(CLUSTER) ## Start a real Kubernetes on this machine.
cluster-up-local: hack/bin/cluster ; hack/bin/cluster up
cluster-up-kind: ; kind get clusters | grep -qx berth || kind create cluster --name berth
cluster-up-existing: ; @kubectl version

.PHONY: cluster-down
cluster-down: cluster-down-$(CLUSTER) ## Stop it, leaving nothing behind.
cluster-down-local: hack/bin/cluster ; hack/bin/cluster down
cluster-down-kind: ; kind delete cluster --name berth
cluster-down-existing: ; @echo "the cluster of the current kube context is yours: left as it is"

.PHONY: images
images: ## Build the images as tars into dist/images, without a container engine.
	go -C hack/image run . build --version=$(VERSION) --out=$(CURDIR)/dist/images $(IMAGES)

.PHONY: load-images
load-images: load-images-$(CLUSTER) ## Give the cluster the images.
load-images-local: hack/bin/cluster ; hack/bin/cluster load-image $(IMAGES:%=dist/images/%.tar)
load-images-kind: ; for tar in $(IMAGES:%=dist/images/%.tar); do kind load image-archive --name berth $$tar; done
load-images-existing: ; @echo "an existing cluster pulls its images itself: push them as docs/operations.md says"

# Images of one tag that were built anew make new pods.
BUILD = $(shell cat dist/images/controller.tar dist/images/gateway.tar 2>/dev/null | sha256sum | cut -c1-12)

.PHONY: install-manifest
install-manifest: $(KUSTOMIZE) ## Write dist/install.yaml: all of Berth in one file.
	@mkdir -p dist
	$(KUSTOMIZE) build config/default \
	| sed -E 's,(ghcr.io/berth-dev/[a-z-]+):dev$$,\1:$(VERSION),; s,(berth.dev/build:) dev,\1 "$(VERSION)-$(BUILD)",' > dist/install.yaml

# The kinds first: older kubectls look up every kind of a file before they apply any.
.PHONY: install
install: install-manifest $(if $(filter local,$(CLUSTER)),hack/bin/cluster) ## Install Berth, or the changes of it.
	$(KUBECTL) apply --server-side --force-conflicts -k config/crd
	@# Until a kind has conditions, waiting for one of them is an error.
	$(KUBECTL) wait --for='jsonpath={.status.conditions[0].type}' crd/sandboxes.berth.dev crd/sandboxtemplates.berth.dev
	$(KUBECTL) wait --for=condition=Established crd/sandboxes.berth.dev crd/sandboxtemplates.berth.dev
	$(KUBECTL) apply --server-side --force-conflicts -f dist/install.yaml

.PHONY: uninstall
uninstall: install-manifest $(if $(filter local,$(CLUSTER)),hack/bin/cluster) ## Remove Berth, and every sandbox with it.
	@# A namespace that ends looks again only after half of the time that its pods may take, which gateways have minutes of.
	$(KUBECTL) delete --ignore-not-found --cascade=foreground -n berth-system deployment/berth-controller deployment/berth-gateway
	$(KUBECTL) delete --ignore-not-found -f dist/install.yaml

hack/bin/cluster: FORCE
	@go -C hack/cluster build -o $(CURDIR)/$@ .

# Tools (built once per version into the cache)

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
