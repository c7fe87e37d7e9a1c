# The usual jobs: `just` lists them. Each recipe is a command that can also be typed by hand.

set shell := ["bash", "-euo", "pipefail", "-c"]

# List the recipes.
default:
    @just --list

# Type-check every crate, target and test.
check:
    cargo check --workspace --all-targets

# Run the tests.
test *ARGS:
    cargo test {{ARGS}}

# Run one test file, or one function of it: `just one treering-traces import_bad`.
one CRATE FILE *NAME:
    cargo test -p {{CRATE}} --test {{FILE}} -- --nocapture {{NAME}}

# Format the sources.
fmt:
    cargo fmt

# The lints that a change must pass.
lints:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings

# Build the documentation; broken links are errors.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Run all of CI, or some of its steps: `just ci specs miri`.
ci *STEPS:
    .ci/run {{STEPS}}

# Replay the sample trace and print the report.
replay *ARGS:
    cargo run --release -- replay traces/samples/zipf.trz {{ARGS}}

# Check the specs: the small models, with TLC, tla-mc and the mirrors. Needs Java and Maven.
specs *ARGS:
    cargo run --release -- check {{ARGS}}

# Run the oracle: random programs, power cuts, threads, protocol steps.
oracle *ARGS:
    cargo run --release -- oracle {{ARGS}}

# Regenerate the short tables and pictures of the documents and compare them.
numbers:
    .ci/numbers

# Check licences, duplicate versions, sources and advisories of the dependencies.
deny:
    cargo deny check
