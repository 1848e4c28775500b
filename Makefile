# Lectern. `make help` lists what can be made.
#
# Tests that take over 20 seconds, or need more than Postgres and Redis, are named TestLong…. They skip themselves unless
# LECTERN_LONG=1, so that `go test ./...` stays quick anywhere. `make test-long` runs these tests, and nothing else.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help up setup build test test-all test-race test-long test-citus steady lint generate bench bench-go fuzz images release e2e

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# The program takes the shell's place, so that a signal to make reaches it.
up: ## run everything on this machine, with demo data (ARGS="--help" for more)
	@scripts/up
	@exec bin/lectern up $(ARGS)

setup: ## install missing programs that the tests need in addition to Go
	@scripts/setup

build: ## build every program into bin/
	@mkdir -p bin
	go build -o bin/ $$(scripts/modules | sed 's|$$|/...|' | xargs go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}')

test: ## test what a change of a service or of the command line can break; installs Postgres, PgBouncer and Redis if they are missing
	@scripts/test

test-all: ## all tests but test-citus and e2e: test, the chart and the operator, test-race and test-long
	@scripts/test-all

test-race: setup ## test the modules that serve requests with the race detector
	@scripts/test-race

test-long: setup ## run the tests that take over 20 seconds, or need a browser, Node.js or other shells
	@scripts/test-long

test-citus: setup ## run the suites of all services on a Citus cluster (CITUS_KIT: the folder of the program that starts it)
	@scripts/test-citus

steady: ## run tests 20 times beside two busy loops (PKG=./services/region/app RUN=TestX, or SINCE=COMMIT for all that changed)
	@scripts/steady $(if $(SINCE),-since '$(SINCE)',-pkg '$(PKG)' $(if $(RUN),-run '$(RUN)'))

lint: ## lint modules that changed since the upstream branch (ALL=1 for all), the chart, the prose, its links, sizes and commits
	@scripts/lint-commits
	@GOWORK=off go -C tools/weight run . ../..
	@GOWORK=off go -C tools/docs run . ../.. links
	@scripts/lint-prose
	@scripts/lint-chart
	@scripts/lint
	@scripts/lint-size

generate: ## bring generated files and tables up to date (PART=openapi for one; a wrong one lists them)
	@scripts/generate $(PART)

bench: ## compare the services with their limits (NAME=list_10 for some, OLD=FOLDER for another checkout beside, GROW=100)
	@scripts/setup postgres redis wrk
	@go run ./bench $(if $(OLD),-old '$(OLD)') $(if $(GROW),-grow $(GROW)) $(NAME)

bench-go: ## run the Go benchmarks of every module (NAME=Stream for some)
	@scripts/modules | sed 's|$$|/...|' | xargs go test -run '^$$' -bench '$(or $(NAME),.)' -benchmem

fuzz: setup ## run every fuzz target, FUZZTIME=10m in all
	@scripts/fuzz

images: ## build the images with ko and push them to KO_DOCKER_REPO; prints values for the chart (NAME=entries for some)
	@scripts/images $(NAME)

release: ## make, sign and push the release VERSION=v1.2.3 (CONTRIBUTING.md)
	@scripts/release '$(VERSION)'

e2e: ## install on a real cluster, check all promises there, remove it (LECTERN_LONG=1 for all of it)
	@scripts/e2e
