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

# Figures of the engine
bench:
    cargo bench -p restante-engine --bench small_workload
    cargo bench -p restante-engine --bench decisions
    cargo bench -p restante-engine --bench timeline

# API documentation
docs:
    cargo doc --workspace --no-deps
