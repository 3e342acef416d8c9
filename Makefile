# This module needs Go and make. On Debian, the targets install everything else.

# With its profile the standard library would be compiled once more. With more memory it takes less time.
STATICCHECK := GOGC=400 go run -pgo=off honnef.co/go/tools/cmd/staticcheck@v0.8.2
SUITES      := ./framework/... ./recipes/...
PLAIN       := go test -count=1 -timeout 20m -vet=off # verify runs go vet
TEST        := $(PLAIN) -race
ADAPTERS    := contrib/otel contrib/prometheus
BACKENDS    := contrib/etcdlock contrib/redislock contrib/sqllock
PROGRAMS    := examples/migrate examples/registries examples/service test/audit test/bench test/compare test/outside
MODULES     := . $(ADAPTERS) $(BACKENDS) $(PROGRAMS) test/browser
MANY        := -p 4 # packages at the same time: they mostly wait
WITHZK      := go run ./internal/withzk # starts real servers, and sets ZOOKEEPER to them
NOSIM       := -skip '^TestSimulated' # simulations have their own servers and ignore ZOOKEEPER

# The packages of $(1) whose tests depend on ZOOKEEPER.
asking = $$(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' $(1) | \
	awk '/ .*docent\/internal\/(realzk|testzk)/ { print $$1 }')

# Runs the command $(2) in each of the modules $(1).
each = @for module in $(1); do (set -x; cd $$module && $(2)) || exit; done

SEEDS     := 1000
FROM      := 1
SCHEDULES := 10000
OFTEN     := 10000

DURATION  := 30m # of a siege
SEED      :=     # of a siege; a random one if it is empty

SITE_BASE := / # the path of the site on its server

.DEFAULT_GOAL := help
.PHONY: help deps deps-zookeeper deps-browser deps-site deps-race deps-bench deps-backends deps-compare deps-model
.PHONY: test verify compile prose licences audit unit race contrib programs backends acceptance acceptance-page
.PHONY: seeds swarm single ensemble lagging chaos siege soak commands differential clients interop browser site
.PHONY: model model-quick track-record track-record-page mutants
.PHONY: bench bench-quick bench-server compare compare-quick fix fuzz

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Everything is compiled before, because commands at the same time would each compile the same. Then three
# targets run at a time, because most of them often wait. Each prints when it ends. With -trimpath test/outside
# uses what has been compiled, and without the data of debuggers the compiler takes a tenth less.
test: export GOFLAGS := $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false
test: deps verify compile ## run all tests
	@$(MAKE) --no-print-directory -j3 -O SEEDS=30 SCHEDULES=1000 OFTEN=1000 \
		unit backends chaos ensemble single contrib interop clients browser differential seeds acceptance programs \
		compare-quick model-quick

verify: prose licences ## check formatting, go vet, staticcheck, go.mod, the prose, and licences
	@scripts/verify-format.sh
	$(call each,$(MODULES),go vet ./... && $(STATICCHECK) ./... && go mod tidy -diff)

compile: deps-race # what tests with the race detector need; verify has compiled the rest
	$(call each,. $(ADAPTERS) $(BACKENDS),go list -export -deps -test -race ./... >/dev/null)

prose: ## check the prose: pronouns for things, long lines, words given up
	go run ./internal/prose

licences: ## check the licences of all modules that are used
	cd test/audit && go run .

# Not a part of test: vulnerabilities become known at any time, and the database must be reachable.
audit: licences ## the same, and look for known vulnerabilities of these modules; VULNDB is the database
	@scripts/audit.sh

# With the race detector the contracts in virtual time take five times as long. race runs them with it.
unit: deps-race ## run all tests in process but acceptance and TestSimulatedContract; simulations run two seeds
	env -u ZOOKEEPER ZKTEST_SEEDS=2 $(TEST) $(MANY) -skip '^TestSimulatedContract$$' \
		$$(go list ./... | grep -v '/test/acceptance$$')

race: deps-zookeeper deps-browser site ## run the tests in process, of programs and of interop with the race detector
	env -u ZOOKEEPER ZKTEST_SEEDS=10 $(TEST) $(MANY) ./... # simulations run ten seeds
	$(call each,$(PROGRAMS) test/browser,$(TEST) ./...)
	ZOOKEEPER=1 $(TEST) ./test/interop

contrib: deps-race ## run the tests of the adapters, each in a module of its own
	$(call each,$(ADAPTERS),$(TEST) ./...)

programs: ## run the tests of programs that have a module of their own, without the race detector
	$(call each,$(PROGRAMS),$(PLAIN) ./...)

backends: deps-backends ## run the tests of the locks on other services, with their servers
	$(call each,$(BACKENDS),$(TEST) ./...)

browser: deps-browser site ## test the page of docent serve, and the site, with Chromium
	cd test/browser && $(PLAIN) ./...

site: deps-site site/node_modules/.package-lock.json ## make a site of all Markdown files in bin/site
	cd site && npm exec -- vitepress build . --base $(SITE_BASE)

site/node_modules/.package-lock.json: site/package.json site/package-lock.json
	cd site && npm install --no-save --ignore-scripts # npm ci refuses a lock without packages of other systems

seeds: ## run simulations: 1,000 seeds, 10,000 schedules, 10,000 rounds; fewer in make test
	ZKTEST_SEEDS=$(SEEDS) $(PLAIN) -run '^TestSimulated' ./recipes/... ./docs/porting
	ZKTEST_SEEDS=$(SCHEDULES) go test -count=1 -timeout 10m \
		-run '^TestP03_OneValidHoldInRandomSchedules$$' ./test/acceptance
	DOCENT_OFTEN=$(OFTEN) go test -count=1 -timeout 10m -v \
		-run '^TestP1(4_NeverMoreValidPermitsThanTheLimit|6_OppositeOrdersDoNotDeadlock)$$' ./test/acceptance

# In its directory, where go test prints what the campaign prints. GO_ON=1 goes on after a seed that fails.
swarm: ## run a campaign of recipes, faults and servers at random: SEEDS=1000000 FROM=1 GO_ON=
	cd recipes/internal/simulation && DOCENT_FROM=$(FROM) ZKTEST_SEEDS=$(SEEDS) DOCENT_GO_ON=$(GO_ON) \
		go test -count=1 -timeout 0 -run '^TestSimulatedSwarm$$'

# What unit runs with the race detector needs none here. What ensemble runs needs no single server.
single: deps-zookeeper ## run the contracts of locks, and all tests that ensemble does not, on one real server
	$(WITHZK) 1 $(PLAIN) $(MANY) $(NOSIM) \
		$(call asking,$$(go list ./... | grep -Ev '/docent/(test/|framework|recipes)'))
	$(WITHZK) 1 $(PLAIN) $(MANY) -run '^TestContract$$' $(call asking,./recipes/...)

ensemble: deps-zookeeper ## run the suites of framework and recipes on three real servers; no contracts of locks
	$(WITHZK) 3 $(PLAIN) $(MANY) -skip '^Test(Simulated|Contract)' $(call asking,$(SUITES))
	ZOOKEEPER=3 $(PLAIN) -run '^TestP13_' ./test/acceptance

lagging: ## run the suites of framework and recipes on three servers in the process, of which two lag behind
	ZOOKEEPER=lagging $(PLAIN) $(MANY) -skip '^TestSimulated' $(call asking,$(SUITES))

chaos: deps-zookeeper ## check all recipes on real servers with faults, at random for 30 s
	ZOOKEEPER=1 $(TEST) ./test/chaos

# Each wait in this test has a bound, so a long siege needs none.
siege: deps-zookeeper ## the same at random for DURATION=30m, with SEED=n again; the last line is the verdict
	@scripts/siege.sh $(DURATION) $(SEED)

soak: ## besiege real servers for ten minutes, run simulations with many seeds, and the race detector on all
	@$(MAKE) --no-print-directory siege DURATION=10m
	@$(MAKE) --no-print-directory lagging
	@$(MAKE) --no-print-directory race
	@$(MAKE) --no-print-directory seeds
	@$(MAKE) --no-print-directory swarm SEEDS=20000

commands: deps-zookeeper ## lose 1,000 locks of docent lock in process and 100 on a real server; 20 minutes
	DOCENT_ROUNDS=1000 go test -count=1 -timeout 60m -v -run '^TestACommandIsDead' ./cmd/docent
	ZOOKEEPER=1 DOCENT_ROUNDS=100 go test -count=1 -timeout 30m -v -run '^TestACommandIsDead' ./cmd/docent

differential: deps-zookeeper ## compare the answers of the in-process server with those of the real one
	ZOOKEEPER=1 $(PLAIN) ./test/differential

# Without the race detector, because the Go driver has races.
clients: deps-zookeeper ## run Curator, kazoo, the Go driver and zkCli on the in-process and the real server
	ZOOKEEPER=1 $(PLAIN) ./test/clients

interop: deps-zookeeper ## run docent, Curator and kazoo on the same locks, also those of the benchmark
	ZOOKEEPER=1 $(PLAIN) ./test/interop
	cd test/bench && ZOOKEEPER=1 $(PLAIN) -run '^TestPeersInOtherLanguages' .

acceptance: deps-zookeeper ## run the known failure modes on both servers and compare docs/acceptance.md
	@scripts/acceptance.sh -check

acceptance-page: deps-zookeeper ## write docs/acceptance.md from both runs
	@scripts/acceptance.sh

# Two checks at a time. The list of the results and the counterexamples is long: it is printed with -v.
model: deps-model ## check models of the locks completely, within bounds, and replay walks of them on the code
	go vet -tags model ./model && $(STATICCHECK) -tags model ./model
	go test -tags model -count=1 -timeout 40m -parallel 2 ./model

model-quick: deps-model ## check the smallest runs of each model, in a minute
	go test -tags model -count=1 -timeout 20m -parallel 2 -run '^TestSmallModel$$' ./model

# Patches of one defect: make track-record ONLY=name
track-record: ## take the mends of former defects back, one at a time, and require that a test fails
	go run ./test/trackrecord -only "$(ONLY)"

track-record-page: ## write docs/track-record.md from the tables of test/trackrecord and test/mutants
	go run ./test/trackrecord -page

# One package: make mutants PACKAGE=internal/queue; one kind: KIND=conditions (or statements, or errors);
# those that were not found last: AGAIN=-again
mutants: ## break conditions and statements of the locks in turn, and require that a test fails; hours
	go run ./test/mutants -save -package "$(PACKAGE)" -kind "$(KIND)" $(AGAIN)
	go run ./test/trackrecord -page

deps: ## install what all tests need (Debian)
	@scripts/deps.sh

deps-zookeeper: ## install ZooKeeper, a JDK, Curator, kazoo, JUnit, pytest and a C compiler (Debian)
	@scripts/deps.sh zookeeper

deps-browser: ## install Chromium and a C compiler (Debian)
	@scripts/deps.sh browser

deps-site: ## install npm (Debian)
	@scripts/deps.sh site

deps-backends: ## install etcd, Redis, PostgreSQL, MariaDB and a C compiler (Debian)
	@scripts/deps.sh etcd redis sql

deps-race: ## install a C compiler for the race detector (Debian)
	@scripts/deps.sh race

deps-bench: ## install what the benchmark needs: the same, and etcd (Debian)
	@scripts/deps.sh zookeeper etcd

deps-model: ## install SPIN and a C compiler (Debian)
	@scripts/deps.sh model

deps-compare: ## install what the comparison needs: ZooKeeper, Curator, kazoo, etcd, Redis, databases (Debian)
	@scripts/deps.sh zookeeper etcd redis sql

bench: deps-bench ## compare docent with others, 20 min on a quiet machine; write docs/benchmarks.md
	cd test/bench && go run .

bench-quick: deps-bench ## the same in three minutes; print the table of targets, write nothing
	cd test/bench && go run . -quick

compare: deps-compare ## compare locks on all services, 20 min on a quiet machine; write docs/comparison.md
	cd test/compare && go run .

compare-quick: deps-compare ## have each fault happen to docent and to a lock that loses, in three minutes
	cd test/compare && go run . -quick

bench-server: deps-zookeeper ## compare the speed of the in-process server with that of the real one
	cd test/bench && go run ./server

fix: ## fix what verify finds, where that is automatic
	gofmt -w .
	$(call each,$(MODULES),go mod tidy)

fuzz: ## fuzz each parser for 15 s
	@scripts/fuzz.sh 15s
