# The commands of this repository, by name. `just` alone lists them.

_default:
    @just --list

# Every scenario, 200 seeds each; or what you name
run *args:
    cargo run --release -- run {{args}}

# All tests
test:
    cargo test --workspace

# Lints, as errors
lint:
    cargo clippy --workspace --all-targets -- -D warnings
    cargo fmt --all --check

# Format the code
fmt:
    cargo fmt --all

# As many seeds as a time budget allows
campaign budget="5m":
    cargo run --release -- run --time-budget {{budget}}

# Seeds that take a part of everything, with the vacuity report
swarm seeds="5000":
    cargo run --release -- run swarm/full --seeds {{seeds}} --vacuity

# Does every scenario raise the alarm?
canary:
    cargo run --release -- run --canary

# Mistakes in the source, built and found
source-patches *args:
    cargo run -p restante-tests --example source_patches {{args}}

# How soon each planted bug is caught
mutants *args:
    cargo run --release -- mutants {{args}}

# A failure again
replay *args:
    cargo run --release -- replay {{args}}

# A failure, made smaller
shrink *args:
    cargo run --release -- shrink {{args}}

# Every order of events within a small bound
check *args="small":
    cargo run --release -- check {{args}}

# A store, held against the contract
conformance *args="--store memory":
    cargo run --release -- conformance {{args}}

# A journal of production, run again
replay-journal file:
    cargo run --release -- replay --journal {{file}}

# The program: a worker with an HTTP API, or an operator's command
restante *args:
    cargo run --release -p restante -- {{args}}

# A real process, killed again and again while it delivers
kill seed="1":
    cargo build -p restante
    cargo run -p restante-tests --example kill_and_recover {{seed}}

# Figures of the engine and the simulator
bench:
    cargo bench -p restante-engine --bench small_workload
    cargo bench -p restante-engine --bench decisions
    cargo bench -p restante-engine --bench timeline
    cargo run --release -p restante-sim --example speed_by_scenario

# Figures of production: accepts, deliveries, the cost of a delivery, the keyed queue
bench-production:
    cargo bench -p restante-driver --bench sqlite_accepts
    cargo bench -p restante-http --bench deliveries
    cargo bench -p restante-driver --bench claim_cost
    cargo bench -p restante-keyed-queue --bench throughput

# API documentation
docs:
    cargo doc --workspace --no-deps
