# SPDX-License-Identifier: Apache-2.0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMANDS := ./mcs/cmd/... ./ignition-stub/cmd/... ./agent/cmd/...
# RACE=1 runs the tests under the race detector, which needs a C compiler.
RACE ?=
TESTFLAGS ?=
FOLDERS := $(wildcard agent deploy e2e ignition-stub mcs snapshot systemd)
# Ignition is a name: an error may begin with it.
CHECKS := -checks inherit,-ST1005

export GOFLAGS := $(GOFLAGS) -buildvcs=false

# make install puts the programs, their man pages and completions below PREFIX, or for a package below DESTDIR/PREFIX.
PREFIX ?= /usr/local
DESTDIR ?=
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: help build image install demo test e2e replay race figures bench lint fmt generate ci lab-ignition lab-ignition035 lab-ignition221 lab-ignition260 lab-kube lab-crds lab-lint lab-promtool lab-debian clean
help: ## this list
	@echo 'make TARGET, where TARGET is one of'
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## the programs, static, into bin/
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ $(COMMANDS)

# Where make image leaves the image; VERSION is what its programs say, and its name in the layout.
IMAGE ?= bin/image

image: ## the server's image for amd64 and arm64, an OCI layout with bills of materials, into bin/image; prints its digest
	@rm -rf $(IMAGE)
	@for arch in amd64 arm64; do \
		mkdir -p $(IMAGE)/programs/$$arch && \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(IMAGE)/programs/$$arch/ ./mcs/cmd/mcs ./agent/cmd/mcsnap-agent || exit; \
	done
	@image=$$(realpath $(IMAGE)) && licence=$(CURDIR)/LICENSE && cd deploy/image && \
		GOWORK=off go run . -programs $$image/programs -licence $$licence -version '$(VERSION)' -out $$image/image && \
		mv $$image/image/* $$image/ && rmdir $$image/image

install: build ## the programs, man pages and completions, into $(DESTDIR)$(PREFIX)
	@rm -rf bin/share
	go run ./e2e/commands/write bin/share
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share
	install -m 0755 bin/mcs bin/ignition-stub bin/mcsnap-agent bin/mcsnap-daemon $(DESTDIR)$(PREFIX)/bin
	cp -R bin/share/. $(DESTDIR)$(PREFIX)/share

demo: build lab-ignition ## one node's life on this machine, with the real Ignition (KEEP=1 leaves its root)
	@go run ./e2e/demo

test: build lab-ignition lab-ignition035 lab-ignition221 lab-ignition260 lab-kube lab-crds lab-promtool ## every test of every day, the real parts included (RACE=1: under the race detector)
	@e2e/lab/packages systemd $(if $(RACE),race)
	go test -timeout 20m $(if $(RACE),-race) $(TESTFLAGS) ./...

e2e: build lab-ignition lab-debian ## stories on machines that boot for real; as root
	MCSNAP_REPORT=$(CURDIR)/bin/report go test -tags e2e -exec $(CURDIR)/e2e/node/inside -count=1 -timeout 30m $(TESTFLAGS) ./e2e/node ./e2e/story
	@echo 'what happened to the machines: bin/report/report.html'
	go test -tags e2e -run TestBehaviour -count=1 $(TESTFLAGS) ./ignition-stub/resolve

replay: lab-kube ## the incident that started it, on a real API server; ends with its figures
	@line=$$(mktemp) && REPLAY_LINE=$$line go test -count=1 -v -run 'TestReplay/the_incident' ./e2e/replay && cat $$line; status=$$?; rm -f $$line; exit $$status

bench: ## how fast, and how big; ends in one line per figure, with its goal
	@mkdir -p bin
	go test -p 1 -run '^$$' -bench . -benchmem ./... >bin/bench.txt 2>&1 || { cat bin/bench.txt; exit 1; }
	@grep -v '^bench: ' bin/bench.txt; grep '^bench: ' bin/bench.txt

# What the race detector is for is our own goroutines; the stories in e2e/ run the built programs.
race: build lab-ignition lab-ignition035 lab-ignition221 lab-ignition260 lab-kube ## the packages that share state, under the race detector
	@e2e/lab/packages systemd race
	go test -timeout 20m -race $(TESTFLAGS) ./snapshot ./snapshot/durable ./snapshot/lister ./snapshot/store \
		./mcs/agents ./mcs/filewatch ./mcs/prune ./mcs/publish ./mcs/serve ./mcs/settings ./mcs/source/... ./agent/handoff ./agent/doctor
	go test -timeout 10m -race $(TESTFLAGS) -run 'TestSameBytes|TestKernelArguments' ./mcs/compose

figures: ## the figures that are ratios to a peer of the same run, and the sizes of bodies
	@go test -p 1 -run '^$$' -bench 'KeepAlive|Fresh|BodyBytes' -benchtime 1x ./mcs/serve ./mcs/compose

lint: lab-lint ## formatting, go vet, staticcheck, go.mod
	@unformatted=$$(gofmt -l $(FOLDERS)); [ -z "$$unformatted" ] || { echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go vet -tags e2e ./e2e/...
	cd deploy/image && GOWORK=off go vet .
	@! go mod tidy -diff 2>/dev/null | grep -A 30 '^diff current/go.mod' || { echo "go.mod is not tidy, run go mod tidy"; exit 1; }
	"$$(e2e/lab/where lint)/staticcheck" $(CHECKS) ./...
	"$$(e2e/lab/where lint)/staticcheck" $(CHECKS) -tags e2e ./e2e/...

fmt: ## formats every Go file
	gofmt -w $(FOLDERS)

generate: ## whatever in the repository is made by a program
	go generate ./...

ci: ## what continuous integration runs, from a machine with Go, git and make
	.ci/run

lab-ignition lab-ignition035 lab-ignition221 lab-ignition260 lab-kube lab-crds lab-lint lab-promtool lab-debian:
	@$(MAKE) --no-print-directory -C e2e/lab $(@:lab-%=%)

clean: ## removes bin/ (the lab's programs stay: make -C e2e/lab clean)
	rm -rf bin
