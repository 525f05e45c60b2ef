# What one does daily. `just` lists it; each line is a command that works without just.

# This list
default:
    @just --list

# Train on the built-in graph
demo:
    cargo run --release -- train

# What a change must pass before it is shown to others
test:
    ./test

# Everything that must hold before a change lands
full:
    ./test --full

# Format all code
fmt:
    cargo fmt --all

# Lints, warnings as errors
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The documentation of all crates in a browser
doc:
    cargo doc --workspace --no-deps --open

# Build and test the Python package
python *arguments:
    crates/python/check {{arguments}}

# Beside the same training in PyTorch
bench:
    python3 bench/compare.py

# The book in a browser
book:
    mdbook serve --open

# The pages of the book that are written from declarations and result tables
renew:
    PROGAP_RENEW=1 cargo test -p progap-cli --test reference
