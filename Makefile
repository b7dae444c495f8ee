# A menu: `make help`. The work itself is in cargo, xtask and hack/.
.DEFAULT_GOAL := help
CARGO ?= cargo
NODES ?= 1
TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
BIN := $(TARGET_DIR)/release
IMAGES := $(TARGET_DIR)/images
# Where rustup puts cargo, also when `make deps` has only just installed it.
export PATH := $(HOME)/.cargo/bin:$(PATH)
export COXSWAIN_IMAGES ?= $(IMAGES)
# The addons of every cluster.
ADDONS := cluster-dns csi-controller csi-local metrics-server
BINS := kube-apiserver kube-controller-manager kube-scheduler cloud-controller-manager kubelet kube-proxy $(ADDONS) coxswain
# What static Pods of the control plane are started from: `$(call control_plane_image,DIR,BINARY)`.
STATIC_PODS := kube-apiserver kube-controller-manager kube-scheduler
# Each addon is packed from the binary of its name: `$(call addon_image,DIR,BINARY)`.
# The programs of this machine that an addon calls.
PROGRAMS_OF_csi-local := cp losetup
define addon_image
	$(CARGO) xtask component-image $(1)/$(2) coxswain.local/$(2):v1.36.3 $(IMAGES)/$(2).tar $(PROGRAMS_OF_$(2))

endef
define control_plane_image
	$(CARGO) xtask component-image $(1)/$(2) registry.k8s.io/$(2):v1.36.3 $(IMAGES)/control-plane/$(2).tar

endef

help: ## Show this menu
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

up: deps build images ## Bring a cluster up on this machine (NODES=2 for more nodes)
	$(BIN)/coxswain up --nodes=$(NODES) --bin-dir=$(BIN) --images-dir=$(IMAGES) $(UP_FLAGS)

down: ## Take it down again; PURGE=1 removes its data, too
	$(BIN)/coxswain down $(if $(PURGE),--purge) --bin-dir=$(BIN) $(UP_FLAGS)

# Where those functions lie together that run while nothing happens: once the binary is linked its own names are known, and it
# is linked again with them first. The linker of this platform can do it, the others' not all.
HOT := $(and $(filter x86_64,$(shell uname -m)),$(patsubst bins/%/hot-code.txt,%,$(wildcard bins/*/hot-code.txt)))
# All of them each time: a crate built for one binary alone has other features, and so its functions other names.
ORDERED := COXSWAIN_LINK_ORDER=$(BIN) $(CARGO) build --locked --release $(foreach bin,$(BINS),-p bin-$(bin))
define order_code
	nm --format=posix $(BIN)/$(1) | $(CARGO) xtask hot-code order bins/$(1)/hot-code.txt >$(BIN)/$(1).order.new
	cmp -s $(BIN)/$(1).order.new $(BIN)/$(1).order || mv $(BIN)/$(1).order.new $(BIN)/$(1).order
	$(ORDERED)
	nm --format=posix $(BIN)/$(1) | $(CARGO) xtask hot-code laid $(BIN)/$(1).order

endef

# Says what takes long before it does, and how long it took.
build: ## Build the binaries in release mode
	@echo "==> building in release mode: some 8 minutes on two cores the first time, then only what has changed"
	@begin=$$(date +%s); $(ORDERED) || exit; \
	took=$$(($$(date +%s) - begin)); echo "==> built in $$((took / 60)) min $$((took % 60)) s"
	@$(foreach bin,$(HOT),$(call order_code,$(bin)))

hot-code: build images ## See anew which functions an idle kubelet runs, for `make build` (as root; needs valgrind)
	$(CARGO) build --locked --release -p bench --bin bench-up
	hack/hot-code.sh $(BIN) $(IMAGES)

images: build ## Build the images that nodes start with
	hack/images.sh build $(IMAGES)
	$(foreach bin,$(ADDONS),$(call addon_image,$(BIN),$(bin)))
	$(if $(findstring --static-pods,$(UP_FLAGS)),$(foreach bin,$(STATIC_PODS),$(call control_plane_image,$(BIN),$(bin))))

deps: ## Install what building, running and testing need (Debian, as root)
	hack/install-deps.sh

fresh-root: ## Proof that `make deps` is enough: a bare Debian that runs it and builds what calls programs (as root)
	hack/fresh-root.sh $(SUITE)

verify: fmt-check lint check test ## Format, lints, layers and all tests: most of what CI runs

fmt: ## Format the code
	$(CARGO) fmt --all

fmt-check: ## Fail where the code is not formatted
	$(CARGO) fmt --all --check

lint: ## Clippy, warnings are errors
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

check: ## Layers, dependencies, licences, sizes
	$(CARGO) xtask check

test: test-surroundings ## All tests; says what it skipped where the machine lacks something (CRI=--must: not containerd)
	hack/with-containerd.sh $(CRI) hack/test.sh

test-quick: ## The tests that need no images, no binaries and no root
	hack/test.sh --quick

test-cri: ## What a real container runtime must do, and static pods on it (as root)
	hack/images.sh build $(IMAGES)
	hack/with-containerd.sh --must hack/test.sh -p node-api -p kubelet-pods --lib -- real_runtime --nocapture

answers: ## The recorded answers of Kubernetes v1.36.3, on both stores (FLAGS="embedded -- --only patches" plays a part)
	$(CARGO) build --locked -p bin-kube-apiserver
	hack/answers.sh $(FLAGS)

sim: ## 5,000 seeds of the simulation: the control plane under faults (SEEDS=N for others)
	COXSWAIN_SIM_SEEDS=$(or $(SEEDS),5000) $(CARGO) test --locked --profile checked -p tests --test simulation -- --nocapture

# The compiler counts which branches an input leads through; without a target of its own, build scripts would count, too.
FUZZ_COUNTERS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters

fuzz: ## Play made-up input to all that takes it from outside (TARGET=cel-sources SECONDS=600 SEED=2, INPUT=file for one)
	RUSTFLAGS="$(FUZZ_COUNTERS)" COXSWAIN_FUZZ_TARGET=$(TARGET) COXSWAIN_FUZZ_SECONDS=$(or $(SECONDS),30) COXSWAIN_FUZZ_SEED=$(SEED) COXSWAIN_FUZZ_INPUT=$(abspath $(INPUT)) \
	$(CARGO) test --locked --profile checked --target $$(rustc -vV | sed -n 's/^host: //p') -p tests --features tests/fuzz-coverage --test fuzz -- inputs_do_no_harm --nocapture

mutants: ## Plant known bugs and see that the tests catch each (NAME=part of their names)
	$(CARGO) xtask mutants $(NAME)

additions: ## Add a kind, a version, a controller and plugins in a copy of the tree (FLAGS=--all runs all unit tests then)
	$(CARGO) xtask additions $(FLAGS)

bench-sched: ## Pods scheduled per second, in process and over HTTPS (FLAGS=--quick for a smoke test)
	$(CARGO) build --locked --release -p bench -p bin-kube-apiserver -p bin-kube-scheduler --bin bench-sched --bin kube-apiserver --bin kube-scheduler
	$(BIN)/bench-sched --bin-dir=$(BIN) $(FLAGS)

bench-api: ## The API server beside raw etcd and a bare HTTPS server (FLAGS=--quick for a smoke test)
	$(CARGO) build --locked --release -p bench -p bin-kube-apiserver --bin bench-api --bin kube-apiserver
	$(BIN)/bench-api --bin-dir=$(BIN) $(FLAGS)

bench-proxy: ## How long kube-proxy takes to write the rules of 10,000 Services (as root)
	COXSWAIN_PROXY_SERVICES=10000 $(CARGO) test --locked -p proxy --lib -- a_large_table --nocapture

bench-lease: ## How long a lease renewal takes while 100,000 pods are listed (PODS=N for others)
	$(CARGO) build --locked --release -p bench -p bin-kube-apiserver --bin bench-api --bin kube-apiserver
	$(BIN)/bench-api --bin-dir=$(BIN) --lease=$(or $(PODS),100000) $(FLAGS)

bench-overload: ## How long lease renewals and gets take while another tenant lists far too much (TIMES=N for more)
	$(CARGO) build --locked --release -p bench -p bin-kube-apiserver --bin bench-api --bin kube-apiserver
	$(BIN)/bench-api --bin-dir=$(BIN) --overload=$(or $(TIMES),2000) $(FLAGS)

bench-policies: ## What policies, a webhook and the audit log add to a create, and how soon a changed policy counts (PODS=N)
	$(CARGO) build --locked --release -p bench -p bin-kube-apiserver --bin bench-api --bin kube-apiserver
	$(BIN)/bench-api --bin-dir=$(BIN) --policies=$(or $(PODS),60000) $(FLAGS)

bench-definitions: ## What 2,000 definitions of custom resources take, and documents of all of them (DEFINITIONS=N)
	$(CARGO) build --locked --release -p bench -p bin-kube-apiserver --bin bench-api --bin kube-apiserver
	$(BIN)/bench-api --bin-dir=$(BIN) --definitions=$(or $(DEFINITIONS),2000) $(FLAGS)

bench-soak: ## What the API server keeps of pods that came and went (SOAK=N for more rounds)
	$(CARGO) build --locked --release -p bench -p bin-kube-apiserver --bin bench-api --bin kube-apiserver
	$(BIN)/bench-api --bin-dir=$(BIN) --soak=$(or $(SOAK),20) $(FLAGS)

ELASTIC := kube-apiserver kube-controller-manager metrics-server
bench-elastic: ## What metrics-server takes for 5,000 pods, and kube-controller-manager for 10,000 autoscalers
	$(CARGO) build --locked --release -p bench $(foreach bin,$(ELASTIC),-p bin-$(bin)) $(foreach bin,bench-elastic $(ELASTIC),--bin $(bin))
	$(BIN)/bench-elastic --bin-dir=$(BIN) $(FLAGS)

VOLUMES := kube-apiserver kube-controller-manager kube-scheduler
bench-volumes: ## 500 pods with a volume each from create to running, beside the same pods without
	$(CARGO) build --locked --release -p bench $(foreach bin,$(VOLUMES),-p bin-$(bin)) $(foreach bin,bench-volumes $(VOLUMES),--bin $(bin))
	$(BIN)/bench-volumes --bin-dir=$(BIN) $(FLAGS)

bench-codec: ## JSON and protobuf beside serde and prost derives, and what api-types costs to build
	$(CARGO) run --locked --release --manifest-path bench/peers/Cargo.toml --bin bench-codec -- $(FLAGS)
	bench/peers/build-cost.sh

bench-cel: ## Evaluating rules in the expression language beside the crate cel
	$(CARGO) run --locked --release --manifest-path bench/peers/Cargo.toml --bin bench-cel -- $(FLAGS)

bench-up: build images ## From coxswain up to the first running pod, and the memory of idle processes (as root)
	$(CARGO) build --locked --release -p bench --bin bench-up
	$(BIN)/bench-up --bin-dir=$(BIN) --images-dir=$(IMAGES) $(FLAGS)

units-boot: ## Boot a systemd with the units of coxswain (as root; needs systemd-container and debootstrap)
	$(CARGO) build --locked $(foreach bin,$(filter-out cloud-controller-manager $(ADDONS),$(BINS)),-p bin-$(bin))
	hack/units.sh $(TARGET_DIR)/debug

# All of the workspace and a test with it, so that every crate has the features that it has in `cargo test --workspace`: else
# most of them are built twice.
test-surroundings: ## The binaries and images that the end-to-end tests bring up
	$(CARGO) build --locked --workspace --bins --test e2e
	hack/images.sh build $(IMAGES) || echo "no images: tests with real containers will be skipped (make deps)"
	$(foreach bin,$(ADDONS),$(call addon_image,$(TARGET_DIR)/debug,$(bin)))
	$(foreach bin,$(STATIC_PODS),$(call control_plane_image,$(TARGET_DIR)/debug,$(bin)))

# Every target of the menu is a name, not a file.
.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*\#\# .*/\1/p' $(MAKEFILE_LIST))
