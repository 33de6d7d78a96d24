//! Every example climbs the same ladder, and stands on the same foot: the head's shape, the lesson's length, the rungs
//! and the functions below the rule. Copies are meant to be copies; a head says where a rung means to differ.

use std::collections::BTreeMap;

use syn::spanned::Spanned;

use crate::inventory::{Example, examples, fault};
use crate::shaders::{Token, tokens};
use crate::{Book, Fault};

const NAMES: [&str; 12] = [
    "instance",
    "adapter",
    "device and queue",
    "shader module",
    "bind group layout",
    "pipeline layout",
    "pipeline",
    "buffers",
    "bind group",
    "commands",
    "submit and wait",
    "map and read",
];
const LONGEST_LESSON: usize = 260;
/// The failure gallery is a reference and not a lesson, so it may be as long as it has exhibits.
const GALLERY: usize = 13;
const RULE: &str = "// ======== ";
const RUNG: &str = "// Rung ";

/// Everything that this module holds against the examples.
pub fn faults(book: &Book) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut files = Vec::new();
    for example in examples(book) {
        faults.extend(head(&example));
        faults.extend(length(&example));
        match read(&example, &mut faults) {
            Ok(file) => files.push(file),
            Err(why) => {
                let repair = format!("run `cargo build --example {}`", example.stem);
                faults.push(fault(example.path, format!("cannot be read as Rust: {why}"), repair));
            }
        }
    }
    for file in &files {
        faults.extend(rungs_agree(file, &files));
    }
    faults.extend(feet_agree(&files));
    faults
}

/// One example, taken apart.
struct File<'a> {
    example: Example<'a>,
    claims: Vec<Claim>,
    rungs: Vec<Rung>,
    items: Vec<Item>,
    tokens: Vec<Token>,
}

/// What a head says of one rung.
struct Claim {
    rung: usize,
    /// The number of the example whose rung this one equals; none if it is this example's own.
    home: Option<usize>,
}

struct Rung {
    number: usize,
    at: String,
    code: Vec<Token>,
}

/// An item: above the rule it is taught, below it is used.
struct Item {
    /// Kind and name: `fn wait`.
    key: String,
    taught: bool,
    first_line: usize,
    last_line: usize,
    code: Vec<Token>,
}

/// The code of a rung or an item. The example's own stem is left out of it: 02's shader is to 02 what 01's is to 01.
fn code(source: &str, first_line: usize, stem: &str) -> Result<Vec<Token>, String> {
    let mut tokens = tokens(source)?;
    for token in &mut tokens {
        token.text = token.text.replace(stem, "NN_name");
        token.line += first_line - 1;
    }
    Ok(tokens)
}

/// Where two pieces of code first differ: a line of the one.
fn difference(ours: &[Token], theirs: &[Token]) -> Option<usize> {
    let same = ours.iter().zip(theirs).take_while(|(our, their)| our.text == their.text).count();
    if same == ours.len() && same == theirs.len() {
        return None;
    }
    ours.get(same).or(ours.last()).map(|token| token.line)
}

fn read<'a>(example: &Example<'a>, faults: &mut Vec<Fault>) -> Result<File<'a>, String> {
    let tokens = tokens(example.text)?;
    Ok(File {
        claims: claims(example, faults),
        rungs: rungs(example, faults),
        items: items(example)?,
        example: *example,
        tokens,
    })
}

/// The lines above the rule.
fn lesson<'a>(example: &Example<'a>) -> Vec<&'a str> {
    example.text.lines().take_while(|line| !line.starts_with(RULE)).collect()
}

fn length(example: &Example) -> Option<Fault> {
    let lines = lesson(example).len();
    (lines > LONGEST_LESSON && example.number != GALLERY).then(|| {
        let what = format!("the lesson has {lines} lines; {LONGEST_LESSON} are the most");
        fault(example.path, what, "move what another lesson or the chapter can say")
    })
}

/// The leading `//!` lines, bare.
fn head_lines<'a>(example: &Example<'a>) -> Vec<&'a str> {
    example.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect()
}

fn head(example: &Example) -> Vec<Fault> {
    let Example { path, stem, .. } = *example;
    let lines = head_lines(example);
    let mut faults = Vec::new();
    if lines.first().is_none_or(|line| line.is_empty() || line.starts_with("In:")) {
        let repair = "begin the file with one sentence in a `//!` line";
        faults.push(fault(path, "the head does not open with what the example teaches", repair));
    }
    let run = format!("cargo run --example {stem}");
    let read = format!("guide/{stem}.md");
    let mut above = 0;
    for (label, content) in [("In:", ""), ("Out:", ""), ("Run:", &run), ("Read:", &read)] {
        let (what, repair) = match lines.iter().position(|line| line.starts_with(label)) {
            None => ("is missing", format!("add a line `//! {label} {content}…`")),
            Some(at) if at < above => ("is out of its place", "write In, Out, Run, Read".into()),
            Some(at) if !lines[at].contains(content) => {
                ("errs", format!("write `{content}` there"))
            }
            Some(at) => {
                above = at;
                continue;
            }
        };
        faults.push(fault(path, format!("the head's `{label}` {what}"), repair));
    }
    faults
}

/// What the `Rungs:` paragraph of a head says, in the sentences that begin with a number.
fn claims(example: &Example, faults: &mut Vec<Fault>) -> Vec<Claim> {
    let lines = head_lines(example);
    let from = lines.iter().skip_while(|line| !line.starts_with("Rungs:"));
    let paragraph: Vec<&str> = from.copied().take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ").replacen("Rungs:", "", 1);
    let mut claims: Vec<Claim> = Vec::new();
    for sentence in paragraph.split("; ").flat_map(|part| part.split(". ")) {
        let sentence = sentence.trim().trim_end_matches(['.', ';']);
        if !sentence.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let Some(said) = claim(sentence) else {
            let what = format!("the head's `{sentence}` cannot be read");
            let repair = "write `2, 11 and 12 as 02`, or `8 and 10 its own: why`";
            faults.push(fault(example.path, what, repair));
            continue;
        };
        for one in said {
            if claims.iter().any(|other| other.rung == one.rung) {
                let what = format!("the head speaks of rung {} twice", one.rung);
                faults.push(fault(example.path, what, "leave the one that is true"));
            }
            claims.push(one);
        }
    }
    claims
}

fn claim(sentence: &str) -> Option<Vec<Claim>> {
    let (list, home) = match sentence.split_once(" its own: ") {
        Some((list, _)) => (list, None),
        None => {
            let (list, home) = sentence.split_once(" as ")?;
            (list, Some(home.parse().ok()?))
        }
    };
    let numbers = list.replace(" and ", ", ");
    numbers.split(", ").map(|number| Some(Claim { rung: number.parse().ok()?, home })).collect()
}

/// The rungs of a lesson, each a paragraph under its comment.
fn rungs(example: &Example, faults: &mut Vec<Fault>) -> Vec<Rung> {
    let lines = lesson(example);
    let mut rungs: Vec<Rung> = Vec::new();
    let mut below = 0;
    for (at, line) in lines.iter().enumerate() {
        if begins_function(line) {
            below = 0;
        }
        let Some(title) = line.trim_start().strip_prefix(RUNG) else { continue };
        let place = format!("{}:{}", example.path, at + 1);
        let Some(number) = rung_number(title) else {
            let what = format!("`{}` names no rung of the ladder", line.trim());
            let repair = "write `// Rung 8, buffers: …` with the number and name that 01 uses";
            faults.push(fault(place, what, repair));
            continue;
        };
        let code = code(&paragraph(&lines[at..]), at + 1, example.stem).map(owned);
        let (what, repair) = match code {
            _ if rungs.iter().any(|rung| rung.number == number) => {
                ("is here twice", "take one of them out")
            }
            _ if number < below => ("is below a later one", "put it in ascending order"),
            Err(_) => ("breaks off inside a bracket", "take out the blank line in its paragraph"),
            Ok(code) if code.is_empty() => ("has no code", "put it right below the comment"),
            Ok(code) => {
                rungs.push(Rung { number, at: place, code });
                below = number;
                continue;
            }
        };
        faults.push(fault(place, format!("rung {number} {what}"), repair));
    }
    rungs
}

/// Without the `&`: a rung in a method borrows what 01's one straight climb owns.
fn owned(mut code: Vec<Token>) -> Vec<Token> {
    code.retain(|token| token.text != "&");
    code
}

fn begins_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.find(|word| !["pub", "pub(crate)", "const", "async", "unsafe"].contains(word))
        == Some("fn")
}

/// `8, buffers: …` and a bare `8, buffers.` are rung 8, if the name is the right one.
fn rung_number(title: &str) -> Option<usize> {
    let (number, rest) = title.split_once(", ")?;
    let (name, _) = rest.split_once([':', '.'])?;
    let number: usize = number.parse().ok()?;
    (NAMES.get(number.checked_sub(1)?) == Some(&name)).then_some(number)
}

/// From the rung's comment to a blank line, the end of the block around it, or the next rung.
fn paragraph(lines: &[&str]) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let ends = |line: &str| {
        let closes = line.trim().chars().all(|sign| ")]};,?".contains(sign));
        line.trim().is_empty()
            || line.trim_start().starts_with(RUNG)
            || (closes && indent(line) < indent(lines[0]))
    };
    let end = lines[1..].iter().position(|line| ends(line)).map_or(lines.len(), |at| at + 1);
    lines[..end].join("\n")
}

/// The rung that another example has under this number.
fn rung<'a>(files: &'a [File], example: usize, number: usize) -> Option<&'a Rung> {
    let file = files.iter().find(|file| file.example.number == example)?;
    file.rungs.iter().find(|rung| rung.number == number)
}

fn rungs_agree(file: &File, files: &[File]) -> Vec<Fault> {
    let Example { path, number: example, .. } = file.example;
    let stale = file.claims.iter().filter_map(|claim| stale(file, claim, files));
    let mut faults: Vec<Fault> = stale.map(|(why, repair)| fault(path, why, repair)).collect();
    for Rung { number: n, at, code } in &file.rungs {
        let claim = file.claims.iter().find(|claim| claim.rung == *n);
        let Some(home) = claim.map_or(Some(1), |claim| claim.home) else { continue };
        if let Some(first) = rung(files, home, *n) {
            if let Some(line) = difference(code, &first.code) {
                let what = format!("rung {n} differs from {}, first in line {line}", first.at);
                let own = format!("or say in the head `{n} its own: why`");
                let repair = format!("copy rung {n} from {}, {own}", first.at);
                faults.push(fault(at, what, repair));
            }
        } else if claim.is_none() && example != 1 {
            let repair = format!("say in the head `{n} its own: why`");
            faults.push(fault(at, format!("rung {n} has no counterpart in 01"), repair));
        }
    }
    faults
}

/// Why something that a head says is no longer true, and the repair.
fn stale(file: &File, claim: &Claim, files: &[File]) -> Option<(String, String)> {
    let Example { number: example, .. } = file.example;
    let n = claim.rung;
    let why = |why: String| Some((format!("the head speaks of rung {n}, but {why}"), take_out(n)));
    let Some(own) = file.rungs.iter().find(|rung| rung.number == n) else {
        return why("it is not in this file".into());
    };
    match claim.home {
        _ if example <= 1 => why("00 and 01 are what the others are compared with".into()),
        Some(home) if home >= example => why(format!("{home:02} is not an earlier example")),
        Some(home) => match (rung(files, home, n), rung(files, 1, n)) {
            (None, _) => why(format!("{home:02} has none")),
            (Some(theirs), Some(first)) if difference(&theirs.code, &first.code).is_none() => {
                why(format!("that of {home:02} is 01's, and needs no mention"))
            }
            _ => None,
        },
        None => {
            let equals = |home| {
                rung(files, home, n).filter(|twin| difference(&own.code, &twin.code).is_none())
            };
            let (home, twin) = (0..example).find_map(|home| Some((home, equals(home)?)))?;
            let repair =
                if home <= 1 { take_out(n) } else { format!("say in the head `{n} as {home:02}`") };
            Some((format!("rung {n} is not its own any more: it equals {}", twin.at), repair))
        }
    }
}

fn take_out(n: usize) -> String {
    format!("take {n} out of the head's `Rungs:`")
}

/// The items of a file, in its order.
fn items(example: &Example) -> Result<Vec<Item>, String> {
    let rule = lesson(example).len() + 1;
    let file = syn::parse_file(example.text)
        .map_err(|error| format!("line {}: {error}", error.span().start().line))?;
    let mut items = Vec::new();
    for item in file.items {
        let span = item.span();
        let (first_line, last_line) = (span.start().line, span.end().line);
        let lines: Vec<&str> =
            example.text.lines().skip(first_line - 1).take(last_line + 1 - first_line).collect();
        let mut code = code(&lines.join("\n"), first_line, example.stem)?;
        // What a lesson shows to its test, a foot keeps to itself.
        if code.first().is_some_and(|token| token.text == "pub") {
            code.remove(0);
        }
        let key = match &item {
            syn::Item::Fn(item) => format!("fn {}", item.sig.ident),
            syn::Item::Struct(item) => format!("struct {}", item.ident),
            syn::Item::Enum(item) => format!("enum {}", item.ident),
            syn::Item::Trait(item) => format!("trait {}", item.ident),
            syn::Item::Type(item) => format!("type {}", item.ident),
            syn::Item::Const(item) => format!("const {}", item.ident),
            syn::Item::Static(item) => format!("static {}", item.ident),
            syn::Item::Macro(syn::ItemMacro { ident: Some(name), .. }) => format!("macro {name}"),
            syn::Item::Impl(_) => {
                let header =
                    code.iter().map(|token| token.text.as_str()).take_while(|text| *text != "{");
                header.collect::<Vec<_>>().join(" ")
            }
            // A `use` or a `mod` has nothing in it that could drift.
            _ => continue,
        };
        items.push(Item { key, taught: first_line < rule, first_line, last_line, code });
    }
    Ok(items)
}

fn feet_agree(files: &[File]) -> Vec<Fault> {
    let mut homes: BTreeMap<&str, (&str, &Item)> = BTreeMap::new();
    let mut faults = Vec::new();
    for File { example: Example { path, .. }, items, tokens, .. } in files {
        for item in items {
            let at = format!("{path}:{}", item.first_line);
            // The first home is the lesson that taught it, or else the first foot that has it.
            let (home, first) = *homes.entry(&item.key).or_insert((path, item));
            if item.taught {
                continue;
            }
            if let Some(line) = difference(&item.code, &first.code) {
                let from = format!("{home}:{}", first.first_line);
                let what = format!("`{}` differs from {from}, first in line {line}", item.key);
                let repair = format!("copy it from {from}, its first home, or rename this one");
                faults.push(fault(&at, what, repair));
            }
            if item.key.strip_prefix("fn ").is_some_and(|name| !uses(tokens, item, name)) {
                let what = format!("nothing here uses `{}`", item.key);
                faults.push(fault(&at, what, "take it out of this file's foot"));
            }
        }
    }
    faults
}

/// Whether a function is called, or handed to another one, outside its own body.
fn uses(tokens: &[Token], item: &Item, name: &str) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    (1..tokens.len()).any(|at| {
        let outside = !(item.first_line..=item.last_line).contains(&tokens[at].line);
        let called =
            text(at + 1) == "(" || [text(at + 1), text(at + 2), text(at + 3)] == [":", ":", "<"];
        let handed_on = ["(", ","].contains(&text(at - 1)) && [")", ","].contains(&text(at + 1));
        // After `fn` it is defined, and after a point it is some type's method.
        let free = !["fn", "."].contains(&text(at - 1));
        text(at) == name && outside && free && (called || handed_on)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_caught;

    const FIRST: &str = r#"//! What one dispatch needs.
//!
//! In:    n f32
//! Out:   their sum
//! Run:   cargo run --example 01_ladder 2^20
//! Read:  guide/01_ladder.md

pub fn main() {
    // Rung 1, instance: the
    // drivers.
    let instance = wgpu::Instance::new();

    // Rung 4, shader module: its
    // source.
    let shader = make(wgpu::include_wgsl!("../shaders/01_ladder.wgsl"));

    // Rung 8, buffers: three.
    let buffers = buffers(
        &shader,
        7,
    );
    wait(buffers);
}

// ======== The foot: as in every example.

/// Waits.
fn wait(patience: u32) -> u32 {
    patience + 1
}
"#;

    /// 01's text as that of another example, with a `Rungs:` paragraph.
    fn copy(stem: &str, rungs: &str) -> String {
        let head = format!("\n//!\n//! Rungs: {rungs}\n\npub");
        FIRST.replace("01_ladder", stem).replace("\n\npub", &head)
    }

    /// The faults of 01 and of these examples beside it.
    fn beside(others: &[(&str, &str)]) -> Vec<Fault> {
        let mut book = Book::of(others);
        book.files.insert("examples/01_ladder.rs".into(), FIRST.into());
        faults(&book)
    }

    /// The faults of 01 and its copy 02, after one edit.
    fn edited(rungs: &str, from: &str, to: &str) -> Vec<Fault> {
        let text = copy("02_tax", rungs);
        assert!(text.contains(from), "{from:?} is not in the example");
        beside(&[("examples/02_tax.rs", &text.replace(from, to))])
    }

    #[track_caller]
    fn caught(rungs: &str, from: &str, to: &str, what: &str, repair: &str) {
        assert_caught(&edited(rungs, from, to), what, repair);
    }

    #[test]
    fn right_copies_pass() {
        assert_eq!(edited("", "buffers: three.", "buffers."), []);
        assert_eq!(edited("", "buffers(\n        &shader,", "buffers(&shader /* ours */,"), []);
        assert_eq!(edited("", "&shader,", "shader,"), []);
        assert_eq!(edited("8 its own: it\n//! is reused; the rest is 01's.", "7,", "2,"), []);
        let second = copy("02_tax", "1 and 8 its own: fewer.").replace("new()", "one()");
        let third = copy("03_setup", "1 and 8 as 02.").replace("new()", "one()");
        let [second, third] = [second, third].map(|text| text.replace("7,", "2,"));
        assert_eq!(
            beside(&[("examples/02_tax.rs", &second), ("examples/03_setup.rs", &third)]),
            []
        );
    }

    #[test]
    fn a_drifted_rung_is_caught_with_both_lines() {
        let faults = edited("", "7,", "2,");
        let what = "rung 8 differs from examples/01_ladder.rs:17, first in line 22";
        assert_caught(&faults, what, "copy rung 8 from examples/01_ladder.rs:17, or say");
        assert_eq!(faults[0].at, "examples/02_tax.rs:19");
    }

    #[test]
    fn a_head_that_is_not_true_is_caught() {
        caught("8 its own: more.", "", "", "equals examples/01_ladder.rs:17", "take 8 out");
        caught("7 its own: more.", "", "", "rung 7, but it is not in this file", "take 7 out");
        caught("8 as 05.", "", "", "05 is not an earlier example", "take 8 out");
        caught("8 like 01.", "", "", "`8 like 01` cannot be read", "write `2, 11 and 12 as 02`");
        caught("8 its own: a. 8 its own: b.", "7,", "2,", "rung 8 twice", "leave the one");
    }

    #[test]
    fn a_rung_that_is_not_as_02s_is_caught() {
        let second = copy("02_tax", "8 its own: more.").replace("7,", "2,");
        let caught = |rungs: &str, to: &str, what: &str, repair: &str| {
            let third = copy("03_setup", rungs).replace("7,", to);
            let faults =
                beside(&[("examples/02_tax.rs", &second), ("examples/03_setup.rs", &third)]);
            assert_caught(&faults, what, repair);
        };
        caught(
            "8 as 02.",
            "3,",
            "differs from examples/02_tax.rs:19",
            "copy rung 8 from examples/02",
        );
        caught("8 its own: more.", "2,", "not its own any more", "say in the head `8 as 02`");
        caught("1 as 02.", "7,", "that of 02 is 01's", "take 1 out");
        caught("8 and 9 as 02.", "2,", "rung 9, but it is not in this file", "take 9 out");
    }

    #[test]
    fn misplaced_and_misnamed_rungs_are_caught() {
        caught("", "8, buffers", "8, buffer", "names no rung", "with the number and name");
        let turned = edited("9 its own: x.", "4, shader module", "9, bind group");
        assert_caught(&turned, "rung 8 is below a later one", "ascending order");
        caught("", "8, buffers", "1, instance", "rung 1 is here twice", "take one of them out");
        caught("", "7,\n", "\n7,\n", "breaks off inside a bracket", "take out the blank line");
        caught("", "its\n", "its\n\n", "rung 4 has no code", "right below");
    }

    #[test]
    fn a_drifted_or_idle_foot_is_caught() {
        let what = "`fn wait` differs from examples/01_ladder.rs:27";
        caught("", "patience + 1", "patience + 2", what, "copy it from examples/01_ladder.rs:27");
        let own = "8 its own: it does not wait.";
        caught(
            own,
            "wait(buffers)",
            "buffers.wait()",
            "nothing here uses `fn wait`",
            "take it out",
        );
    }

    #[test]
    fn what_a_lesson_taught_is_the_home_of_what_the_feet_use() {
        let taught = "/// Rests.\npub fn rest() -> u32 {\n    7\n}\n\n// ======== ";
        let first = FIRST.replace(RULE, taught).replace("wait(buffers)", "wait(rest())");
        let used = "\nfn rest() -> u32 {\n    7\n}\n\n/// Waits.";
        let second = copy("02_tax", "8 its own: it rests.").replace("/// Waits.", used);
        let second = second.replace("wait(buffers)", "wait(rest())").replace("7,", "5,");
        let faults = |second: &str| {
            let mut book = Book::of(&[("examples/02_tax.rs", second)]);
            book.files.insert("examples/01_ladder.rs".into(), first.clone());
            faults(&book)
        };
        assert_eq!(faults(&second), []);
        let drifted = faults(&second.replace("    7\n", "    8\n"));
        assert_caught(&drifted, "`fn rest` differs from examples/01_ladder.rs", "its first home");
    }

    #[test]
    fn a_lesson_has_at_most_260_lines() {
        let lines = FIRST.lines().take_while(|line| !line.starts_with(RULE)).count();
        let blank = |lines: usize| format!("{}{RULE}", "\n".repeat(lines));
        let long = |length: usize| FIRST.replace(RULE, &blank(length - lines));
        assert_eq!(faults(&Book::of(&[("examples/01_ladder.rs", &long(260))])), []);
        let faults = faults(&Book::of(&[("examples/01_ladder.rs", &long(261))]));
        assert_caught(&faults, "the lesson has 261 lines", "move what another lesson");
    }

    #[test]
    fn a_head_that_lacks_something_is_caught() {
        caught("", "//! Out:   their sum\n", "", "`Out:` is missing", "add a line `//! Out:");
        caught("", "//! What one dispatch needs.\n", "", "does not open", "one sentence");
        caught(
            "",
            "example 02_tax",
            "example 2",
            "`Run:` errs",
            "write `cargo run --example 02_tax`",
        );
        caught("", "guide/02_tax", "guide/tax", "`Read:` errs", "write `guide/02_tax.md` there");
        let [first, second] = ["//! In:    n f32\n", "//! Out:   their sum\n"];
        let turned = edited("", &format!("{first}{second}"), &format!("{second}{first}"));
        assert_caught(&turned, "`Out:` is out of its place", "In, Out, Run, Read");
    }

    #[test]
    fn what_is_no_rust_is_caught() {
        caught("", "fn wait(", "fn wait((", "cannot be read", "run `cargo build --example 02_tax`");
    }

    #[test]
    fn the_book() {
        crate::report(faults(&crate::the_book()));
    }
}
