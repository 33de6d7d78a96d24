//! Arithmetic in `text` fences, evaluated by fend: `67,108,864 B / 7384.7 µs = 9.1 GB/s`. This module only spells the
//! guide's notation as fend reads it, and brackets each number with its unit: on its own fend takes `a B / b µs` for
//! `a × (B / b) × µs`.

use super::Finding;
use super::page::{Page, Row};

/// Units that fend knows by these names.
const UNITS: [&str; 19] = [
    "s", "ms", "µs", "ns", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "byte",
    "bytes", "bit", "bits", "million", "billion",
];

/// What the guide counts, plurals aside. A count has no unit. A word that is missing here is a fault, so that fend,
/// which knows a thousand units, misreads none.
const COUNTED: [&str; 46] = [
    "add",
    "arc",
    "atomic",
    "barrier",
    "bin",
    "box",
    "buffer",
    "call",
    "cell",
    "chunk",
    "copies",
    "copy",
    "core",
    "dispatch",
    "edge",
    "element",
    "f32",
    "group",
    "invocation",
    "lane",
    "level",
    "load",
    "operation",
    "partial",
    "pass",
    "phase",
    "point",
    "read",
    "repetition",
    "row",
    "run",
    "step",
    "store",
    "submit",
    "survivor",
    "thread",
    "tick",
    "tile",
    "u32",
    "value",
    "vertex",
    "vertices",
    "wait",
    "word",
    "workgroup",
    "write",
];

/// fend's functions that a chapter may need.
const FUNCTIONS: [&str; 4] = ["ceil", "floor", "log2", "sqrt"];

/// One side of a claim as fend reads it, and its numbers as they were written, without thousands separators.
#[derive(Default)]
struct Side {
    fend: String,
    numbers: Vec<String>,
    operators: usize,
}

pub fn findings(pages: &[Page]) -> Vec<Finding> {
    let mut found = Vec::new();
    for page in pages {
        for (_, rows) in page.fences().filter(|(info, _)| *info == "text") {
            found.extend(rows.iter().filter_map(|row| check(page, row)));
        }
    }
    found
}

fn check(page: &Page, row: &Row) -> Option<Finding> {
    let text = row.text.replace('≈', "=");
    let claim = text.split_once(": ").map_or(text.as_str(), |(_label, claim)| claim).trim();
    let has_digit = |side: &str| side.contains(|c: char| c.is_ascii_digit());
    let (left, right) =
        claim.split_once(" = ").filter(|(left, right)| has_digit(left) && has_digit(right))?;
    let (what, repair) = if right.contains(" = ") {
        (format!("two claims on a line: `{claim}`"), "write one claim a line".to_string())
    } else {
        evaluate(left, right).err()?
    };
    Some(Finding::new(page.at(row.start), what, repair))
}

/// Whether left and right are equal within half a unit of the right side's last digit; if not, what and the repair.
fn evaluate(left: &str, right: &str) -> Result<(), (String, String)> {
    let unreadable = |why: String| {
        (format!("`{left} = {right}` cannot be evaluated: {why}"), SPELLING.to_string())
    };
    let (l, r) = (read(left).map_err(unreadable)?, read(right).map_err(unreadable)?);
    // Several numbers on the right have no last digit to round at: the two sides must be the same.
    let single = r.numbers.first().filter(|_| r.numbers.len() == 1 && r.operators == 0);
    let rounded = single.and_then(|n| Some((n.parse::<f64>().ok()?, decimals(n))));
    let (value, decimals) = rounded.unwrap_or((1.0, 12));
    let computed = if value == 0.0 {
        // Nothing can be divided by 0, and 0 is 0 in any unit.
        ask(&l.fend).map_err(unreadable)?
    } else {
        ask(&format!("({}) / ({})", l.fend, r.fend)).map_err(unreadable)? * value
    };
    // A hair more than half a unit, because the quotient itself is rounded.
    if (computed - value).abs() <= 0.5 / 10f64.powi(decimals as i32) * (1.0 + 1e-9) {
        return Ok(());
    }
    let what = format!("`{left} = {right}` is not true: the left side is {computed:.decimals$}");
    Err(match rounded {
        Some(_) => {
            let repair = format!("write {computed:.decimals$} on the right, or mend the left");
            (format!("{what} in the right side's unit"), repair)
        }
        None => (format!("{what} of the right side"), "mend either side".to_string()),
    })
}

/// What fend makes of a quotient, which has no unit left, or of what comes to 0, whatever its unit.
fn ask(question: &str) -> Result<f64, String> {
    let mut context = fend_core::Context::new();
    let answer = fend_core::evaluate(&format!("({question}) to 20 dp"), &mut context)?;
    let answer = answer.get_main_result().trim_start_matches("approx. ");
    match answer.split_once(' ').unwrap_or((answer, "")) {
        (number, unit) if unit.is_empty() || number == "0" => {
            number.parse().map_err(|_| format!("it comes to {answer}"))
        }
        _ => Err(format!("it comes to {answer}, so the units of its sides differ")),
    }
}

const SPELLING: &str = "write numbers with their units, + − × ÷ / ^ and brackets; put words before a `: `, or add a \
                        counted word to COUNTED in tests/book/guide/arithmetic.rs";

fn decimals(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// Spells one side of a claim as fend reads it.
fn read(side: &str) -> Result<Side, String> {
    let plain = plain(side);
    let mut rest = plain.trim();
    let mut read = Side::default();
    while let Some(c) = rest.chars().next() {
        let piece = if c.is_ascii_digit() {
            let (number, after) = take_number(rest);
            read.numbers.push(number.clone());
            let (unit, after) = take_unit(after)?;
            rest = after;
            format!("({number}{unit})")
        } else if c.is_alphabetic() {
            let (word, after) = take_word(rest);
            rest = after;
            match word {
                "per" => "/".to_string(),
                _ if FUNCTIONS.contains(&word) => word.to_string(),
                // `bytes / element`: a word without a number is one of it.
                _ => format!("(1{})", unit(word)?),
            }
        } else {
            rest = &rest[c.len_utf8()..];
            match c {
                ' ' => continue,
                // `6.3×` is a ratio, not half a product.
                '*' if rest.is_empty() => continue,
                '+' | '-' | '*' | '/' => read.operators += 1,
                '(' | ')' => {}
                _ => return Err(format!("`{c}` is not read")),
            }
            c.to_string()
        };
        read.fend.push_str(&piece);
        read.fend.push(' ');
    }
    Ok(read)
}

/// The guide's signs as ASCII, and superscripts as powers.
fn plain(side: &str) -> String {
    let mut plain = String::new();
    let mut raised = false;
    for c in side.chars() {
        let superscript = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|s| s == c).map(|digit| digit.to_string());
        if (superscript.is_some() || c == '⁻') && !raised {
            plain.push('^');
        }
        raised = superscript.is_some() || c == '⁻';
        match c {
            '×' | '·' => plain.push('*'),
            '÷' => plain.push('/'),
            '−' | '⁻' => plain.push('-'),
            'μ' => plain.push('µ'),
            '\u{a0}' | '\u{2009}' | '\u{202f}' => plain.push(' '),
            _ => plain.push_str(&superscript.unwrap_or(c.to_string())),
        }
    }
    plain
}

/// Takes a number off the front, without its thousands separators and with its power: `2^24`, `67,108,864`, `7384.7`.
fn take_number(text: &str) -> (String, &str) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (mut number, mut rest) = text.split_at(digits(text));
    let mut read = number.to_string();
    while rest.starts_with([',', ' ']) && digits(&rest[1..]) == 3 && number.len() <= 3 {
        (number, rest) = rest[1..].split_at(3);
        read.push_str(number);
    }
    for sign in [".", "^", "^-"] {
        if let Some(after) = rest.strip_prefix(sign)
            && digits(after) > 0
        {
            (number, rest) = after.split_at(digits(after));
            read.push_str(sign);
            read.push_str(number);
        }
    }
    (read, rest)
}

/// Takes a word with its slashes off the front: `GB/s`, `B/element`.
fn take_word(text: &str) -> (&str, &str) {
    let in_word = |(at, c): (usize, char)| {
        c.is_alphanumeric() || c == '/' && text[at + 1..].starts_with(char::is_alphabetic)
    };
    let end = text.char_indices().find(|&place| !in_word(place)).map_or(text.len(), |(at, _)| at);
    text.split_at(end)
}

/// Takes the unit of a number off the front, where it has one, as fend reads it.
fn take_unit(text: &str) -> Result<(String, &str), String> {
    let unpadded = text.trim_start();
    if let Some(rest) = unpadded.strip_prefix('%') {
        return Ok((" / 100".to_string(), rest));
    }
    let (word, rest) = take_word(unpadded);
    if word.is_empty() || word == "per" || FUNCTIONS.contains(&word) {
        return Ok((String::new(), text));
    }
    Ok((unit(word)?, rest))
}

/// ` GB/s` of `GB/s`, ` B` of `B/element`, and nothing of `elements`.
fn unit(word: &str) -> Result<String, String> {
    let mut unit = String::new();
    for (place, part) in word.split('/').enumerate() {
        if UNITS.contains(&part) {
            unit.push_str(if place == 0 { " " } else { " / " });
            unit.push_str(part);
        } else if !is_counted(part) {
            return Err(format!("`{part}` is neither a unit nor a counted word"));
        }
    }
    Ok(unit)
}

fn is_counted(word: &str) -> bool {
    let singular = ["s", "es"].iter().filter_map(|ending| word.strip_suffix(ending));
    singular.chain([word]).any(|word| COUNTED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::{page::pages, plain};
    use crate::{Book, Fault, assert_caught, report, the_book};

    fn check(line: &str) -> Vec<Fault> {
        let page = format!("```text\n{line}\n```\n\n```rust\nlet wrong = 1; // 1 + 1 = 3\n```\n");
        let book = Book::of(&[("guide/02_x.md", &page)]);
        plain(findings(&pages(&book)))
    }

    #[test]
    fn right_claims_hold() {
        for line in [
            "67,108,864 B / 7384.7 µs = 9.1 GB/s",
            "65535 × 1024 = 67,107,840",
            "6929.1 µs − 1544.2 µs = 5384.9 µs",
            "128 MiB / 4 B = 33,554,432 elements",
            "2^24 × 4 B = 64 MiB",
            "2²⁴ × 4 B = 64 MiB",
            "2^24 f32 × 4 B/element = 67 108 864 B",
            "2^24 B = 16 MiB",
            "14332.9 µs / 2257.7 µs ≈ 6.3×",
            "work at 2^24: 16,777,216 elements ÷ 256 elements per group = 65,536 groups",
            "ceil(1,000,001 / 256) = 3907 groups",
            "log2(2^24) = 24",
            "(3 ms + 500 µs) × 2 = 7 ms",
            "7 / 20 = 35 %",
            "2⁻³ × 16 = 2",
            "1 TB/s / (500 GB/s) = 2",
            "2^25 = 2 × 2^24",
            "24 elements/s × 2 s = 48 elements",
            "2^42 B = 4 TiB",
            "65,536 × 256 − 2^24 = 0",
            "64 KiB − 65,536 B = 0 B",
        ] {
            report(check(line));
        }
    }

    #[test]
    fn lines_without_figures_are_no_claims() {
        for line in
            ["upload | encode | GPU", "n = 2^24", "left = right", "02 = two", "a ≈ b", "x == 2"]
        {
            report(check(line));
        }
    }

    #[test]
    fn a_wrong_claim_is_caught_with_the_right_number() {
        assert_caught(
            &check("65535 × 256 = 16,776,961"),
            "the left side is 16776960",
            "write 16776960",
        );
        assert_caught(&check("67,108,864 B / 7384.7 µs = 9.2 GB/s"), "is not true", "write 9.1");
        assert_caught(&check("2^24 × 4 B = 64 MB"), "is not true", "write 67");
        assert_caught(&check("65,536 × 48 − 3,000,000 = 0"), "is not true", "write 145728");
        assert_caught(&check("2^25 = 3 × 2^24"), "the left side is 0.6666", "mend either side");
    }

    #[test]
    fn differing_units_are_caught() {
        assert_caught(
            &check("64 MiB / 2 ms = 32 MiB"),
            "the units of its sides differ",
            "with their units",
        );
        assert_caught(&check("3 ms + 4 B = 7 ms"), "cannot be evaluated", "with their units");
    }

    #[test]
    fn a_word_that_is_not_known_is_caught() {
        assert_caught(&check("4 apples × 2 = 8"), "`apples` is neither a unit", "COUNTED");
        assert_caught(&check("4 @ 2 = 8"), "`@` is not read", "COUNTED");
    }

    #[test]
    fn two_claims_on_a_line_are_caught() {
        assert_caught(&check("2 × 2 = 4 ≈ 4.0"), "two claims on a line", "one claim a line");
    }

    #[test]
    fn the_book_holds() {
        let book = the_book();
        report(plain(findings(&pages(&book))));
    }
}
