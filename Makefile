# What this module needs is Go and make; on Debian, the targets install the rest.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
SUITES      := ./framework/... ./recipes/...

.DEFAULT_GOAL := help
.PHONY: help deps deps-race quickstart test single ensemble verify fix fuzz

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what is missing to run a server: ZooKeeper and a Java runtime (Debian)
	@scripts/deps.sh

deps-race: ## install what is missing to run the tests: that, and a C compiler for the race detector (Debian)
	@scripts/deps.sh race

quickstart: deps ## start a real ZooKeeper and run the example on it
	go run ./examples/quickstart

test: deps-race verify single ensemble ## pass all tests: checks, every test on one real server, the suites on three

single: deps-race ## every test, with one real server where one is needed
	ZOOKEEPER=1 go test -race -count=1 -timeout 10m ./...

ensemble: deps-race ## the suites on three real servers
	ZOOKEEPER=3 go test -race -count=1 -timeout 10m $(SUITES)

verify: deps-race ## formatting, go vet, staticcheck, go.mod
	@scripts/verify-format.sh
	go vet ./...
	go run $(STATICCHECK) ./...
	go mod tidy -diff

fix: ## mend what verify finds and can be mended
	gofmt -w .
	go mod tidy

fuzz: ## fuzz the parsers, a quarter of a minute each
	@scripts/fuzz.sh 15s
