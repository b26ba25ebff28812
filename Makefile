# Everything that continuous integration does, anybody can do with make. Only Go,
# make and git are needed, except for lint (downloads tools), e2e-clients and
# e2e-editors (node and npm), and e2e-report (those and Chromium).

# The standard library of this version has security fixes that go.mod's minimum
# lacks; Go downloads it when needed. "make GOTOOLCHAIN=local" uses what is there.
export GOTOOLCHAIN := go1.27.3
# Modules come from go.mod and go.sum as they are, whatever the user's settings.
export GOFLAGS := -mod=readonly
export GOWORK := off

GO ?= go
BENCH ?= .
FUZZTIME ?= 30s
RACE ?= ./...
CHROMIUM ?= $(shell command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.DEFAULT_GOAL := help
.PHONY: help build man bin/demo demo demo-cache run test test-examples race lint vuln fuzz bench golden interop sessions e2e-clients e2e-editors e2e-report ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build shunt, shuntd and enginesim into bin/
	$(GO) build -trimpath -o bin/ ./cmd/...

man: ## write the manual page bin/shunt.1
	@mkdir -p bin
	$(GO) run ./cmd/shunt man > bin/shunt.1

# One build with one set of flags, so that nothing is compiled twice.
bin/demo:
	@echo "building; the first time this takes about a minute"
	@$(GO) build -trimpath -o bin/ ./cmd/... ./examples/demo

demo: bin/demo ## route requests of three sizes through eight simulated engines, and check it
	@bin/demo --bin bin

demo-cache: bin/demo ## conversations that follow the engine with their prefix, and the hit rate against round_robin
	@bin/demo --bin bin --cache

run: bin/demo ## the stack of demo, kept up for your own requests until Ctrl-C
	@bin/demo --bin bin --keep

test: ## run all tests
	$(GO) test ./...

test-examples: build ## run the routing tests of all examples
	bin/shunt test --coverage --fail-under 70 examples/*/routing_test.yaml

race: ## run all tests, or those of RACE, with the race detector (needs a C compiler)
	$(GO) test -race $(RACE)

lint: ## gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet ./...
	cd golden/clients/go && $(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

# The database is made from a module, because its own host is out of reach of
# machines that have nothing but a module proxy.
vuln: ## govulncheck with an offline database
	@mkdir -p bin
	$(GO) run ./.ci/vulndb bin/vulndb
	$(GO) run $(GOVULNCHECK) -db file://$(CURDIR)/bin/vulndb ./...

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@set -e; for dir in $$(grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$dir; \
		done; \
	done

bench: build ## run the benchmarks (BENCH selects), and those next to nginx and haproxy and to the reference tokenizer
	$(GO) test -run '^$$' -p 1 -bench '$(BENCH)' -benchmem ./...
	$(GO) run ./golden/bench --bin bin
	@if command -v node >/dev/null && command -v npm >/dev/null; then golden/interop/tokens/run.sh speed; \
	else echo "skipped: tokenization next to the reference library, which needs node and npm"; fi

golden: ## rewrite expected outputs, and fail if that changed any
	UPDATE=1 $(GO) test ./...
	git diff --exit-code

interop: ## compare tokens, templates, hashes, events and reports with the reference implementations (needs node, npm, python3, g++)
	golden/interop/tokens/run.sh
	golden/interop/events/run.sh
	golden/interop/reports/run.sh

sessions: ## race 64 first requests of each of 10,000 sessions over two routers that share Redis (needs redis-server)
	SHUNT_REQUIRE_REDIS=1 SHUNT_SESSIONS=10000 $(GO) test -count=1 -timeout 20m -run 'TestReplicasBindOnce|TestManySessions' -v ./golden/state

e2e-clients: bin/demo ## the OpenAI clients for Go and JavaScript against the stack of run
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "e2e-clients needs node (20 or later) and npm in PATH" >&2; exit 1; }
	cd golden/clients/js && npm ci --no-audit --no-fund
	@bin/demo --bin bin --exec 'set -e; (cd golden/clients/go && $(GO) test -count=1 -v ./...); cd golden/clients/js && npm test'

e2e-editors: ## the language server of VS Code and Neovim with the schema of configurations (needs node and npm)
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "e2e-editors needs node (20 or later) and npm in PATH" >&2; exit 1; }
	$(GO) build -trimpath -o bin/ ./cmd/shunt
	cd golden/editors && npm ci --no-audit --no-fund && SHUNT=$(CURDIR)/bin/shunt npm test

e2e-report: ## the pages of shunt report in Chromium (CHROMIUM names it), with pictures in bin/report (needs node and npm)
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "e2e-report needs node (20 or later) and npm in PATH" >&2; exit 1; }
	@test -n "$(CHROMIUM)" || { echo "e2e-report needs Chromium; name it with CHROMIUM=/path/to/chromium" >&2; exit 1; }
	$(GO) build -trimpath -o bin/ ./cmd/shunt
	rm -rf bin/report
	cd golden/browser && npm ci --no-audit --no-fund && SHUNT=$(CURDIR)/bin/shunt CHROMIUM=$(CHROMIUM) npm test

ci: lint vuln race test-examples fuzz demo demo-cache interop sessions e2e-clients e2e-editors e2e-report ## what continuous integration runs

clean: ## remove what was built
	rm -rf bin golden/clients/js/node_modules golden/editors/node_modules golden/browser/node_modules
