# On a Debian machine with Go, make and root every target installs what it needs. `make help` lists them.

STATICCHECK = v0.8.2
ACTIONLINT  = v1.7.12
UPLOT       = 1.6.32
FUZZTIME    = 30s
BENCH       = .
TEST        = .
SCHEDULES   = 1000000
STATES      = 100000
STORM       = ^TestStorm
SERVERS     = mysql-8.0 mariadb-11.8 mariadb-11.4 mariadb-10.5 mariadb-10.2 mysql mariadb
VERSION     = $(shell git describe --tags --always --dirty)
OUT         = $(CURDIR)/dist
PLATFORMS   = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
PKG         = ./...
QUICK       = ./driver/... ./idgen ./idgen/segment/... ./idgen/worker ./idgen/worker/workertest ./internal/...
INSTALLS    = $(wildcard testutil/*/install.sh idgen/worker/*/*/install.sh)
ROWS        = 1000000
SEED        = 0
CLUSTERS    = .
BASE        = /
# Not taken from the environment: make publish publishes only where its command line names a place.
REMOTE      =
REGISTRY    =
GITHUB      =
SLOW        = Simulation|Mutations|Model|LongTexts|ServerGenerated|ServerKilled|PagesRun|RunBook|StoredTwice|OneToTwo|Guests|NoUpdateRight|TestProgramsInSessions|TestJudge|TestStagedIDs|TestStagedInSessions|TestProcesses|TestStagingWorksOnLoggingServer|TemporaryTables|TestSpellings
CHAOS       = 3.1.0,2.3.2,cluster,mysql,redis,zookeeper,etcd

BIN   = .cache/bin
SERVE = $(BIN)/serve

.DEFAULT_GOAL := help
.PHONY: help demo demo-nacos demo-proxy demo-failover test quick one sim model mutations storm storm-proxy chaos chaos-pairs chaos-clusters bench bench-proxy figures fleet plots fuzz conformance clients versions newest dashboard packages release publish site recording lint mysql-server clean serve

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { line = sprintf("  make %-14s", $$1); n = split($$2, words, " "); \
		for (i = 1; i <= n; i++) { if (length(line words[i]) > 78) { print line; line = sprintf("%21s", "") } line = line " " words[i] } print line }' $(MAKEFILE_LIST)

demo: ## the main job, shown on two shards (LEAFSQL_DSN: on your own server)
	@[ -n "$$LEAFSQL_DSN" ] || .ci/install mariadb
	@cd examples && go build -buildvcs=false -o ../$(BIN)/quickstart ./quickstart
	@$(BIN)/quickstart

demo-nacos: ## three services on a real Nacos: one is killed, one has its clock set back
	@.ci/install mariadb
	@testutil/nacostest/install.sh
	@cd examples && go build -buildvcs=false -o ../$(BIN)/nacos-service ./nacos-service
	@$(BIN)/nacos-service

demo-proxy: ## programs in PHP, Python, Java, Node and Go write to two databases at once, through the proxy
	@.ci/install mariadb
	@testutil/clients/install.sh all
	@cd examples && go build -buildvcs=false -o ../$(BIN)/languages ./languages
	@$(BIN)/languages

demo-failover: ## the primary of leaf_alloc dies with ranges that its replica lacks, without the mark and with it
	@.ci/install mariadb
	@cd examples && go build -buildvcs=false -o ../$(BIN)/failover ./failover
	@$(BIN)/failover

test: serve ## every test of every module but storms, with the race detector, on real MariaDB and MySQL
	@.ci/install gcc mariadb mysql mariadb-11.8
	@for script in $(INSTALLS); do $$script || exit 1; done
	@LEAFSQL_TEST_DATA=$${LEAFSQL_TEST_DATA-$$(.ci/memory)} $(SERVE) -mysql -- .ci/test '$(TEST)'

quick: serve ## while you work, under 90 s: what needs no server but one MariaDB, without the race detector and the longest tests
	@.ci/install mariadb
	@$(SERVE) -- sh -c 'export LEAFSQL_TEST_MYSQL_DSN=$$LEAFSQL_TEST_DSN; \
		go test -short -timeout=5m -skip="$(SLOW)" $(QUICK) && exec go test -C docs -count=1 -short -timeout=5m -skip="$(SLOW)" .'

one: serve ## one rule's test with only the servers that its package needs: make one PKG=./driver/servertest TEST=TestMatrix
	@.ci/one $(PKG) '$(TEST)'

sim: ## simulate the leases of worker ids: SCHEDULES=1000000 of them, and the shortest counterexample if there is one
	@go test -count=1 -timeout=0 -v -run='Simulation' ./idgen/worker -sim $(SCHEDULES)

model: ## search all interleavings of processes on one row of leaf_alloc (STATES=0: to the end)
	@go test -count=1 -timeout=0 -v -run='TestModel$$' ./idgen/segment -model.states $(STATES)

mutations: ## break leases and segments in each way they must not be broken, and see a duplicate found
	@go test -count=1 -timeout=0 -v -run='TestMutations' ./idgen/worker ./idgen/segment

storm: serve ## what decides by time: clusters, registries and stores are killed, cut off, frozen and wiped (STORM=TestStormCluster for some alone)
	@.ci/install mariadb mysql iptables
	@for script in $(INSTALLS); do $$script || exit 1; done
	@testutil/clients/install.sh all
	@$(SERVE) -mysql -- .ci/storm '$(STORM)'

storm-proxy: ## 16 programs in five languages write 1,000,000 rows through two proxies on each server, while all of these are killed (ROWS=60000 for fewer)
	@.ci/install mariadb mysql
	@testutil/clients/install.sh all
	@go test -C testutil/chaos -tags storm -count=1 -timeout=0 -v -run='^TestStormProxy$$' . -proxy.rows='$(ROWS)'

chaos: serve $(if $(filter file,$(origin CHAOS)),chaos-pairs) ## 16 processes × 200,000 inserts while they and the registry are killed (CHAOS=3.1.0 or mysql for one alone), then chaos-pairs
	@.ci/install mariadb
	@for script in $(filter %/nacostest/install.sh idgen/%,$(INSTALLS)); do $$script || exit 1; done
	@$(SERVE) -- go test -C testutil/chaos -tags storm -count=1 -timeout=0 -v -run='^TestStormChaos$$' . -chaos.servers='$(CHAOS)'

chaos-pairs: serve ## 30 fail-overs of each server and replication that lose ranges; old versions, an upgrade, two primaries (needs the history)
	@.ci/install mariadb mysql haproxy
	@$(SERVE) -mysql -- go test -tags storm -count=1 -timeout=0 -v -run='^Test(FailOver.*|StormFailOver.*|StormUpgrade|StormTwoPrimaries)$$' ./testutil/clustertest -failovers 30

chaos-clusters: ## 1,000,000 rows in each of seven clusters while faults of a seeded schedule disturb it; about 40 minutes, as root (SEED=7 CLUSTERS=Galera ROWS=20000)
	@.ci/install mariadb mysql haproxy iptables
	@testutil/clustertest/install.sh
	@go test -tags storm -count=1 -timeout=0 -v -run='^TestStormChaosClusters$$/$(CLUSTERS)' ./testutil/clustertest -chaos.rows='$(ROWS)' -chaos.for=200s -chaos.seed='$(SEED)'

bench: serve ## benchmarks (BENCH=pattern PKG=./package)
	@.ci/install mariadb
	@$(SERVE) -- $(if $(filter ./...,$(PKG)),.ci/each-module go test,go test -C $(PKG)) -run='^$$' -bench='$(BENCH)' -benchmem $(if $(filter ./...,$(PKG)),./...,.)

bench-proxy: ## the proxy beside HAProxy and a direct connection: rates, times, processor time, memory, and what of that holds
	@.ci/install mariadb haproxy
	@go build -buildvcs=false -o $(BIN)/proxybench ./testutil/proxybench
	@$(BIN)/proxybench

figures: serve ## measure what docs/benchmarks.md shows, five times each, and draw its plots; half an hour on a machine that does nothing else
	@.ci/install mariadb mysql
	@for script in $(INSTALLS); do $$script || exit 1; done
	@$(SERVE) -- go run -C docs/plots . -measure 5

fleet: ## simulate fleets of up to 100,000 processes, for the figures and plots of docs/scale.md; minutes
	@go test -count=1 -timeout=60m -v -run='^TestFigures$$' ./testutil/fleet -figures $(CURDIR)/docs/plots/fleet.txt
	@go run -C docs/plots .

plots: ## draw the plots of docs/benchmarks.md and docs/scale.md from docs/plots/figures.txt and fleet.txt
	@go run -C docs/plots .

fuzz: serve ## every fuzz test for 30 s each (FUZZTIME=5m)
	@.ci/install mariadb mysql
	@$(SERVE) -mysql -- .ci/fuzz $(FUZZTIME)

conformance: ## other projects' own test suites, run through mysql-leaf, on both servers (PEER=name)
	@.ci/install mariadb mysql
	@go run ./testutil/conformance $(PEER)

clients: serve ## programs in PHP, Python, Java, Node, Ruby, Perl and Rust through the proxy, beside runs without it
	@.ci/install mariadb mysql haproxy
	@testutil/clients/install.sh all
	@$(SERVE) -mysql -- go test -tags clients -count=1 -timeout=40m -v -run='$(TEST)' ./testutil/clients
	@go test -C examples -tags clients -count=1 -v -run='$(TEST)' ./languages

versions: ## the tests on other versions of MySQL and MariaDB, into the table of docs/servers.md (SERVERS=mysql-8.0 for one, SERVERS=tidb or vitess for these engines)
	@go run ./testutil/servers $(SERVERS)

newest: ## make test with the newest versions of other modules (GOAL=quick)
	@.ci/newest $(or $(GOAL),test)

dashboard: ## run each query of the Grafana dashboard on a Prometheus that scrapes real processes, and draw its panels into docs/dashboard.png; four minutes
	@.ci/install mariadb node chromium
	@testutil/promtooltest/install.sh prometheus
	@npm install --silent --no-save --no-audit --no-fund --prefix .cache/dashboard uplot@$(UPLOT)
	@go test -C metrics -tags dashboard -count=1 -v -run='^TestDashboard$$' .

packages: ## image, compose file, Kubernetes and Helm, systemd, completion and release archives, each built and tried (root)
	@.ci/install mariadb buildah ca-certificates systemd zsh fish
	@cd contrib && go test -tags packages -count=1 -timeout=40m -v -run='$(TEST)' .

release: ## the archives of a release in dist, with bills of materials and SHA256SUMS (VERSION=v0.2.0 PLATFORMS=linux/amd64)
	@cd contrib && go run ./release -tree .. -out '$(OUT)' -version '$(VERSION)' -platforms '$(PLATFORMS)'

publish: ## rehearse a release in dist/VERSION, and publish it where REMOTE, REGISTRY and GITHUB name a place (VERSION=v0.2.0)
	@.ci/install buildah ca-certificates
	@.ci/publish '$(VERSION)' '$(OUT)' '$(PLATFORMS)' '$(REMOTE)' '$(REGISTRY)' '$(GITHUB)'

site: ## the documentation as a site, into the folder site; its links, its search, and how browsers show it are checked (BASE=/leafsql/)
	@.ci/install node chromium
	@docs/site/build.sh '$(BASE)'
	@go test -C docs/site -tags site -count=1 -v . -base '$(BASE)'

recording: ## record the demo for the top of README.md, into docs/demo.svg
	@.ci/install mariadb
	@cd examples && go build -buildvcs=false -o ../$(BIN)/quickstart ./quickstart
	@go run ./testutil/recording -out docs/demo.svg -title 'A recording of make demo' '$(BIN)/quickstart -stay=false'

lint: ## gofmt, go vet, staticcheck, tidy go.mod; actionlint; the English of comments and pages, the subjects of commits
	@.ci/each-module $(CURDIR)/.ci/lint $(STATICCHECK)
	@go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT)
	@go run ./testutil/prose
	@.ci/subjects

mysql-server: ## unpack a MySQL server beside MariaDB, for the tests
	@.ci/install mysql

clean: ## remove what the targets built here and in the cache folder
	rm -rf .cache .demo site
	rm -rf "$${XDG_CACHE_HOME:-$$HOME/.cache}/leafsql"

serve:
	@go build -buildvcs=false -o $(SERVE) ./testutil/mysqltest/serve
