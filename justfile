# `just` alone lists these. The lessons themselves need cargo and nothing else.
default:
    @just --list

# every lesson in order, until one fails
all:
    #!/usr/bin/env sh
    set -eu
    for example in examples/[0-9]*.rs; do
        name=$(basename "$example" .rs)
        printf '\n==== %s\n\n' "$name"
        cargo run -q --example "$name"
    done

# the results, against the CPU; and the book, against the code
check:
    cargo test --workspace

# repair what is mechanical in the book: line numbers, quotes of code, the template of the notes
bless:
    cargo run -q -p book --bin bless

# your own notes.md, out of the template; one that is there already stays as it is
notes:
    #!/usr/bin/env sh
    if [ -e notes.md ]; then
        echo "notes.md is there already, and stays as it is"
    else
        cp guide/notes_template.md notes.md && echo "notes.md is yours: predict first, then run"
    fi

# how your predictions held, out of notes.md
score:
    @cargo run -q --example 15_calibration

# the guide as a website, in target/book/guide
book:
    mdbook build guide
    rm -rf target/book/examples target/book/shaders
    cp -r examples shaders target/book/
