# What this module needs is Go and make; on Debian, the targets install the rest.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
SUITES      := ./framework/... ./recipes/...
TEST        := go test -race -count=1 -timeout 20m
MODULES     := contrib/otel test/bench
MANY        := -p 4 # packages at a time: most of them wait most of the time
NOSIM       := -skip '^TestSimulated' # they have servers of their own, whatever ZOOKEEPER says

# those of the packages given whose tests ask what ZOOKEEPER says; the others' are the same whatever it says
asking = $$(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' $(1) | awk '/ .*docent\/internal\/(realzk|testzk)/ { print $$1 }')

SEEDS     := 1000
SCHEDULES := 10000
OFTEN     := 10000

.DEFAULT_GOAL := help
.PHONY: help deps deps-race test verify prose unit contrib acceptance acceptance-page seeds single ensemble chaos differential clients interop deps-bench bench bench-quick bench-server fix fuzz

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: verify unit contrib acceptance seeds single ensemble differential interop ## pass all tests: all of the following
	@$(MAKE) --no-print-directory -j2 -O chaos clients # most of both is waiting
test: SEEDS = 150# by itself, make seeds runs more
test: SCHEDULES = 1500
test: OFTEN = 1500

verify: ## formatting, go vet, staticcheck, go.mod
	@scripts/verify-format.sh
	go vet ./...
	go run $(STATICCHECK) ./...
	go mod tidy -diff

prose: ## how the prose is: pronouns for things, long lines, words given up
	go run ./internal/prose

unit: deps-race ## every test that needs no real server, but for acceptance; the suites run on the in-process one, the simulations with few seeds
	env -u ZOOKEEPER ZKTEST_SEEDS=25 $(TEST) $(MANY) $$(go list ./... | grep -v '/test/acceptance$$')

contrib: deps-race ## the modules of their own: all that verify and unit do here
	@for module in $(MODULES); do \
		(set -x; cd $$module && go vet ./... && go run $(STATICCHECK) ./... && $(TEST) ./... && go mod tidy -diff) || exit; \
	done

seeds: ## the simulations of the recipes and of the porting guide with 1,000 seeds; 10,000 random schedules; 10,000 rounds; fewer as a part of make test
	ZKTEST_SEEDS=$(SEEDS) go test -count=1 -timeout 20m -run '^TestSimulated' ./recipes/... ./docs/porting
	ZKTEST_SEEDS=$(SCHEDULES) go test -count=1 -timeout 10m -run '^TestP03_OneValidHoldInRandomSchedules$$' ./test/acceptance
	DOCENT_OFTEN=$(OFTEN) go test -count=1 -timeout 10m -v -run '^TestP1(4_NeverMoreValidPermitsThanTheLimit|6_OppositeOrdersDoNotDeadlock)$$' ./test/acceptance

single: deps ## the same, the launcher of real servers and docs/testing.md, with one real server where one is needed; no simulations
	ZOOKEEPER=1 $(TEST) $(MANY) $(NOSIM) $(call asking,$$(go list ./... | grep -v '/docent/test/'))

ensemble: deps ## the suites on three real servers; no contracts of locks, which take long and care for one server
	ZOOKEEPER=3 $(TEST) -skip '^Test(Simulated|Contract)' $(call asking,$(SUITES))
	ZOOKEEPER=3 $(TEST) -run '^TestP13_' ./test/acceptance

# Each wait in these tests has a bound, so a long siege needs none.
chaos: deps ## real servers with faults, in order and, for half a minute or DOCENT_SIEGE=1h, at random; holds are checked
	ZOOKEEPER=1 $(TEST) $(if $(DOCENT_SIEGE),-timeout 0 -v) ./test/chaos

differential: deps ## the in-process server and the real one are asked the same, and must answer the same
	ZOOKEEPER=1 $(TEST) ./test/differential

clients: deps ## Curator, kazoo, the Go driver and the command line client on both; without the race detector, for the driver races with itself
	ZOOKEEPER=1 go test -count=1 -timeout 10m ./test/clients

interop: deps ## docent, Curator and kazoo on the same locks: processes in Go, Java and Python; and those of the benchmark
	ZOOKEEPER=1 $(TEST) ./test/interop
	cd test/bench && ZOOKEEPER=1 $(TEST) -run '^TestPeersInOtherLanguages' .

acceptance: deps ## what users suffer from, in process and on a real server; docs/acceptance.md must say how it went
	@scripts/acceptance.sh -check

acceptance-page: deps ## write docs/acceptance.md from both runs
	@scripts/acceptance.sh

deps: ## install what is missing for all tests: ZooKeeper, a JDK, Curator, kazoo, JUnit, pytest, a C compiler (Debian)
	@scripts/deps.sh

deps-race: ## install what is missing for the race detector: a C compiler (Debian)
	@scripts/deps.sh race

deps-bench: ## install what is missing for the benchmark: what the tests need, and etcd (Debian)
	@scripts/deps.sh bench

bench: deps-bench ## docent beside Curator, kazoo, the Go driver and etcd, in a quarter of an hour on a quiet machine; writes docs/benchmarks.md
	cd test/bench && go run .

bench-quick: deps-bench ## the same within two minutes; prints the table of targets, and writes nothing
	cd test/bench && go run . -quick

bench-server: deps ## how fast the in-process server is beside the real one
	cd test/bench && go run ./server

fix: ## mend what verify finds and can be mended
	gofmt -w .
	go mod tidy
	for module in $(MODULES); do (cd $$module && go mod tidy) || exit; done

fuzz: ## fuzz the parsers, a quarter of a minute each
	@scripts/fuzz.sh 15s
