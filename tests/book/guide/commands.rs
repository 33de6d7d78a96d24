//! The commands that the guide prints name examples, tests and recipes that exist. Other programs are not judged.

use super::Finding;
use super::page::{Kind, Page};
use crate::Book;

/// cargo's own commands that a chapter may print.
const CARGO: [&str; 12] = [
    "add", "build", "check", "clean", "clippy", "doc", "fetch", "fmt", "info", "install", "tree",
    "update",
];

pub fn findings(book: &Book, pages: &[Page]) -> Vec<Finding> {
    let mut found = Vec::new();
    for page in pages {
        for (line, at) in commands(page) {
            for command in line.split(['|', ';', '&']) {
                if let Some((what, repair)) = wrong(book, command) {
                    found.push(Finding::new(page.at(at), what, repair));
                }
            }
        }
    }
    found
}

/// The lines that are commands, and where they stand: after `$ ` in `console` and `sh` fences, any line of an `sh`
/// fence, and code spans.
fn commands<'p>(page: &'p Page) -> Vec<(&'p str, usize)> {
    let mut commands = Vec::new();
    for block in &page.blocks {
        if let Kind::Fence(info) = &block.kind {
            for row in &block.rows {
                let typed =
                    row.text.strip_prefix("$ ").filter(|_| info == "console" || info == "sh");
                let command = typed.or_else(|| (info == "sh").then_some(&row.text));
                commands.extend(command.map(|command| (command, row.start)));
            }
        }
        commands.extend(block.spans.iter().map(|span| (span.text.as_str(), span.range.start)));
    }
    commands
}

fn wrong(book: &Book, command: &str) -> Option<(String, String)> {
    let words: Vec<&str> =
        command.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
    // `WGPU_BACKEND=vulkan cargo run …`
    let start = words.iter().position(|word| !word.contains('='))?;
    let after = |flag| {
        words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1)).copied()
    };
    let exists = |folder: &str, name: &str| {
        // A my_* is the reader's own to make.
        name.starts_with("my_") || book.files.contains_key(&format!("{folder}/{name}.rs"))
    };
    match &words[start..] {
        ["cargo", "run", ..] => match (after("--example"), after("--bin")) {
            (Some(name), _) if exists("examples", name) => None,
            (_, Some("bless")) => None,
            (Some(name), _) => {
                Some((format!("there is no example {name}"), listed(book, "examples/")))
            }
            (None, _) => {
                Some((format!("`{}` names no example", words.join(" ")), listed(book, "examples/")))
            }
        },
        ["cargo", "test", ..] => match after("--test") {
            Some(name) if !exists("tests", name) => {
                Some((format!("there is no test {name}"), listed(book, "tests/")))
            }
            _ => None,
        },
        ["cargo", other, ..] if !other.starts_with('-') && !CARGO.contains(other) => Some((
            format!("`cargo {other}` is not a command that the guide uses"),
            format!("use one of {}", CARGO.join(" ")),
        )),
        ["just", recipe, ..] if !recipe.starts_with('-') => {
            let recipes = recipes(book);
            let missing = !recipes.iter().any(|known| known == recipe);
            missing.then(|| {
                (
                    format!("justfile has no recipe {recipe}"),
                    format!("use one of {}", recipes.join(" ")),
                )
            })
        }
        _ => None,
    }
}

fn listed(book: &Book, folder: &str) -> String {
    let names = book.files.keys().filter_map(|path| path.strip_prefix(folder)?.strip_suffix(".rs"));
    format!("use one of {}", names.collect::<Vec<_>>().join(" "))
}

/// The names of the justfile's recipes and aliases.
fn recipes(book: &Book) -> Vec<&str> {
    let lines =
        book.text("justfile").lines().filter(|line| !line.starts_with([' ', '\t', '#', '[']));
    lines
        .filter_map(|line| {
            let (head, rest) = line.split_once(':')?;
            match head.strip_prefix("alias ") {
                Some(alias) => Some(alias.trim()),
                None if rest.starts_with('=') => None,
                None => head.trim_start_matches('@').split(' ').next(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{page::pages, plain};
    use crate::{Fault, assert_caught, report, the_book};

    const JUSTFILE: &str = "n := \"20\"\n\n# Runs all.\nall:\n    cargo test\n\n@score N=\"1\": all\n    x\n\nalias s := score\n";

    fn check(page: &str) -> Vec<Fault> {
        let book = Book::of(&[
            ("guide/02_x.md", page),
            ("justfile", JUSTFILE),
            ("examples/02_tax.rs", ""),
            ("tests/02_tax.rs", ""),
        ]);
        plain(findings(&book, &pages(&book)))
    }

    #[test]
    fn commands_that_exist_hold() {
        report(check(
            "`just all`, `just s`, `just --list`, `cargo run -q --example 02_tax 2^20`, `cargo test`, `cargo build`, `ls`\n\n\
             ```console\n$ WGPU_BACKEND=vulkan cargo run --example 02_tax | head   # just none\njust none of this\n```\n\n\
             ```sh\ncp examples/02_tax.rs examples/my_tax.rs\ncargo run --example my_tax && just score 2\n\
             cargo test --test 02_tax\ncargo run -q -p book --bin bless\n```\n",
        ));
    }

    #[test]
    fn a_command_that_does_not_exist_is_caught() {
        assert_caught(
            &check("`cargo run --example 03_none`"),
            "no example 03_none",
            "use one of 02_tax",
        );
        assert_caught(&check("`cargo run`"), "names no example", "use one of 02_tax");
        assert_caught(
            &check("```sh\ncargo test --test 03_none\n```"),
            "no test 03_none",
            "use one of 02_tax",
        );
        assert_caught(
            &check("```console\n$ just none\n```"),
            "no recipe none",
            "use one of all score s",
        );
        assert_caught(&check("`cargo rune --example 02_tax`"), "`cargo rune`", "use one of add");
    }

    #[test]
    fn the_book_holds() {
        let book = the_book();
        report(plain(findings(&book, &pages(&book))));
    }
}
