# Berth. `make` lists what there is to do.

# Set VERSION=1.2.3 for a release; otherwise the toolchain records the commit.
VERSION ?=
SEED     ?=
# What the containers of the acceptance run need.
CONTAINERS := debootstrap debian-archive-keyring systemd-container
LABKIT   := bin/berth-lab
LDFLAGS  := -s -w $(if $(VERSION),-X berth/shared/buildinfo.version=$(VERSION))
GO       := go
TOOL     := $(GO) tool -modfile=.tools/go.mod

# Every build and test of the agent opens libvirt at run time, so no headers are needed.
export GOFLAGS := $(GOFLAGS) -tags=libvirt_dlopen -trimpath

.DEFAULT_GOAL := help
.PHONY: help deps build generate lint check test labs lab lab-down demo chaos admin sim schedules explore mutants goals fuzz vuln bench scale packages acceptance clean

help: ## list the targets
	@echo "Berth places virtual machines on libvirt hosts. Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what building and the lab need (Debian, Ubuntu; root); nothing to do when it is there
	@integration/lab/install-deps.sh bin/lab openssl genisoimage bindfs systemd rpm rpmlint lintian chromium

build: ## build bin/berth, bin/berth-agent and bin/berth-lab
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o bin/berth ./coordinator
	CGO_ENABLED=1 $(GO) build -ldflags '$(LDFLAGS)' -o bin/berth-agent ./agent
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o $(LABKIT) ./integration/lab/cmd/berth-lab

generate: ## write the generated code anew
	cd shared/proto && $(GO) tool -modfile=../../.tools/go.mod buf generate

lint: ## check format, vet and linters
	$(TOOL) golangci-lint run
	$(TOOL) buf lint shared/proto

check: ## what to run before a commit: format, vet, linters, laws and short unit tests; no root, no network, no lab
	@$(GO) run ./integration/suites check

test: deps build packages ## run what a change needs, with an eighth of the long suites (root); ARGS='-only moves,unit' for some
	@integration/lab/install-deps.sh bin/lab $(CONTAINERS)
	@$(GO) run ./integration/suites $(if $(SEED),-seed $(SEED)) $(ARGS) test

labs: deps build ## run every test that needs a lab, an hour on two processors (root)
	@$(GO) run ./integration/suites -whole -only chaos,admin,moves,lab,storage,hypervisor,hostile,keys,prometheus,script test

lab: deps build ## raise three hosts and three coordinators that stay, and say what to try
	@$(LABKIT) up

lab-down: ## take all labs down
	@test ! -x $(LABKIT) || $(LABKIT) down

demo: deps build ## show the main job on a lab; KEEP=1 leaves the lab up
	@$(GO) run ./integration/lab/demo

chaos: deps build ## try every fault at every moment of a migration on a lab
	$(GO) test -v -timeout 4h -count 1 ./integration/chaos -long

admin: deps build ## let SEEDS (2000) random administrators loose on guests of a lab, from FIRST on; SEED=n repeats one; SHORTEN=1 shortens
	SEEDS=$(or $(SEEDS),2000) FIRST=$(FIRST) SEED=$(SEED) SHORTEN=$(SHORTEN) $(GO) test -v -timeout 24h -count 1 -run '^TestSeeds$$' ./integration/admin

sim: ## run random clusters until nothing moves, and whole sites with faults, in virtual time: SEEDS of each; SEED=n repeats one
	SEEDS=$(or $(SEEDS),10000) SEED=$(SEED) $(GO) test -count 1 -v -timeout 3h -run '^TestRandomSites$$' ./coordinator/scenario
	SEEDS=$(or $(SEEDS),20000) SEED=$(SEED) $(GO) test -count 1 -v -timeout 12h -run '^TestSeeds$$' ./integration/faults

schedules: ## play N (5000) schedules of faults on real Raft members, and kill one at KILLS (200) places
	SCHEDULES=$(N) $(GO) test -count 1 -v -timeout 12h -run '^Test(Schedules|AKilledMember|AMemberWhoseDisk|ADamagedStore)' ./coordinator/consensus

explore: ## draw the random tests of the engines from ROUNDS (20) seeds that nobody has tried; a failure prints its seed
	@for round in $$(seq $(or $(ROUNDS),20)); do \
	  RAPID_SEED=$$(od -An -N6 -tu8 /dev/urandom | tr -d ' ') && export RAPID_SEED && echo "RAPID_SEED=$$RAPID_SEED" && \
	  $(GO) test -count 1 $$(grep -rl --include='*_test.go' pgregory.net/rapid agent coordinator shared | xargs -n1 dirname | sort -u | sed 's,^,./,') || exit 1; \
	done

mutants: ## plant bugs one at a time and tell which the tests catch; ARGS='-only NAME,NAME' for some
	@$(GO) run ./integration/mutants $(ARGS)

goals: deps build ## measure the goals of reliability and print their table (hours); RELEASE=1 for the sizes of a release
	@RELEASE=$(RELEASE) $(GO) run ./integration/goals $(ARGS)

fuzz: ## fuzz every parser, FUZZTIME (30s) each
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' agent coordinator shared | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -ho --include='*_test.go' 'func Fuzz[A-Za-z0-9]*' -r $$package | awk '{ print $$2 }'); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),30s) -fuzzminimizetime 20x ./$$package || exit 1; \
	  done; \
	done

vuln: ## look for known holes in what is linked in; says "skipped" where the database cannot be reached
	@.ci/vuln

bench: deps build ## measure the goals and print them beside the figures; ARGS='-quick -only R1' for a part
	@integration/lab/install-deps.sh bin/lab prometheus-libvirt-exporter ganeti-htools
	@$(GO) run ./integration/bench $(ARGS)

scale: build ## measure what grows with the size of a site; ARGS=-quick up to 3,000 nodes
	@$(GO) run ./integration/scale $(ARGS)

packages: ## build the RPM and DEB packages
	@packaging/build

acceptance: deps packages ## install the packages in system containers and do the main job with them
	@integration/lab/install-deps.sh bin/lab $(CONTAINERS)
	@$(GO) run ./integration/acceptance

clean: lab-down ## remove what was built
	rm -rf bin dist
