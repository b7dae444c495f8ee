# A menu: `make help`. The work itself is in cargo, xtask and hack/.
.DEFAULT_GOAL := help
CARGO ?= cargo
NODES ?= 1

help: ## Show this menu
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

deps: ## Install what building, running and testing need (Debian, as root)
	hack/install-deps.sh

verify: fmt-check lint check test ## Everything CI runs

fmt: ## Format the code
	$(CARGO) fmt --all

fmt-check: ## Fail where the code is not formatted
	$(CARGO) fmt --all --check

lint: ## Clippy, warnings are errors
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

check: ## Layers, dependencies, licences, sizes
	$(CARGO) xtask check

test: ## All tests; says what it skipped where the machine lacks something
	$(CARGO) test --locked --workspace --no-fail-fast

.PHONY: help deps verify fmt fmt-check lint check test
