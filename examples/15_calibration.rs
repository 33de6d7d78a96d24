//! 15 calibration: how far the predictions in notes.md were from what was measured, and on which side.
//!
//! In:    notes.md, in the folder where it is run; there is no argument. Nothing is written.
//! Out:   for each chapter, and for each kind of quantity: slots filled, predictions within 2 ×, misses
//!        too low and too high, the median of predicted ÷ measured; the widest misses; what could not
//!        be counted; the next chapter.
//! Run:   cargo run --example 15_calibration
//! Read:  guide/15_calibration.md
//!
//! Rungs: none, since no GPU has a part in this.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

const HEAD: &str = include_str!("15_calibration.rs");
const NO_NUMBER: RangeInclusive<u64> = RangeInclusive::new(1, 0);
/// The chapter of this lesson: its slots are about all others, and in none of their rows.
const OWN: &str = "15";
/// How far a prediction may be off, on either side, and still hold.
const HOLDS: f64 = 2.0;
/// So many misses are listed.
const WIDEST: usize = 3;
/// Kinds of quantities, each with a unit of its kind; the last takes every other unit, and none.
const KINDS: [(&str, &str); 5] =
    [("times", "s"), ("bandwidths", "B/s"), ("ratios", "×"), ("shares", "%"), ("counts", "")];

pub fn main() {
    argument(HEAD, NO_NUMBER);
    if let Err(error) = lesson() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// A slot, with its texts as they stand in the notes.
pub struct Slot {
    pub id: String,
    name: String,
    predicted: String,
    measured: String,
    /// Whether a measurement is there, or the word that there is none to be had.
    pub done: bool,
    /// Predicted ÷ measured, where both are there.
    pub ratio: Option<f64>,
}

#[derive(Default)]
pub struct Notes {
    /// The headings of chapters, by their numbers.
    titles: BTreeMap<String, String>,
    pub slots: Vec<Slot>,
    /// What stands there and cannot be counted, with its line.
    pub faults: Vec<String>,
}

/// All slots of the notes, in whatever order. The first of an id counts.
pub fn parse(text: &str) -> Notes {
    let mut notes = Notes::default();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut chapter = String::new();
    for (line, at) in text.trim_start_matches('\u{feff}').lines().zip(1..) {
        if line.trim_start().starts_with('#') {
            let title = line.trim_matches(|sign: char| sign == '#' || sign.is_whitespace());
            chapter = title.split_whitespace().next().unwrap_or_default().to_string();
            notes.titles.entry(chapter.clone()).or_insert(title.to_string());
            continue;
        }
        let Some((slot, fault)) = slot(line, &chapter) else { continue };
        let id = slot.id.clone();
        let first = *seen.entry(id.clone()).or_insert(at);
        let fault = if first == at || id.is_empty() {
            notes.slots.extend((!id.is_empty()).then_some(slot));
            fault
        } else {
            Some(format!("is in line {first} already, and that one counts"))
        };
        notes.faults.extend(fault.map(|why| format!("line {at}: {id} {why}")));
    }
    notes
}

/// The slot that a line is or means to be, and what is wrong with it. `chapter` is the heading's.
fn slot(line: &str, chapter: &str) -> Option<(Slot, Option<String>)> {
    let item = line.trim_start().starts_with(['-', '*', '+']);
    let marks = |sign: char| sign.is_whitespace() || "-*+•>[x]`_|".contains(sign);
    let line = line.trim_start_matches(marks);
    let word = line.split_whitespace().next().unwrap_or_default();
    let (id, rest) = (word.trim_end_matches(['*', '`', '_', ':', '.']), &line[word.len()..]);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let named = id.split_once('.').filter(|(two, k)| two.len() == 2 && digits(two) && digits(k));

    // Lower case of ASCII is as long: what is found at a byte of it is at that byte of the line.
    let lower = rest.to_ascii_lowercase();
    let colon = rest.find(':').unwrap_or(0);
    let predict = lower[colon..].find("predict").map(|at| colon + at);
    let fields = predict.and_then(|from| Some((from, from + lower[from..].find("measured")?)));
    let meant = match named {
        Some((two, _)) => two == chapter || lower.contains("predict") || lower.contains("measured"),
        None => item && fields.is_some(),
    };
    let (from, to) = fields.unwrap_or((rest.len(), rest.len()));
    let [predicted, measured] = [&rest[from..to], &rest[to..]].map(|field| {
        let field = field.trim_start_matches(char::is_alphabetic);
        field.trim_matches([':', '=', '*', '|', ' ', '\t']).to_string()
    });
    let none = measured.to_lowercase().starts_with("none");
    let done = none || matches!(quantity(&measured, &measured), Ok(Some(_)));
    let (ratio, fault) = match ratio(&predicted, if none { "" } else { &measured }) {
        _ if !meant => return None,
        _ if named.is_none() => (None, Some("has no id, such as 02.1, in front".to_string())),
        _ if fields.is_none() => (None, Some("lacks `predict` and `measured` behind it".into())),
        Ok(ratio) => (ratio, None),
        // A share of 0 % is an answer to 15.1.
        Err(_) if id.starts_with(OWN) && done => (None, None),
        Err(_) if matches!(quantity(&measured, &measured), Ok(Some(0.0))) => {
            (None, Some("was measured as 0, and has no ratio: nothing to mend".into()))
        }
        Err(error) => (None, Some(error.to_string())),
    };
    let (id, name) = (named.map_or("", |_| id).to_string(), rest[..colon].trim().to_string());
    Some((Slot { id, name, predicted, measured, done, ratio }, fault))
}

/// Predicted ÷ measured, where both are there. A unit that was left out is the other number's.
pub fn ratio(predicted: &str, measured: &str) -> Result<Option<f64>> {
    let [one, other] = [predicted, measured].map(|text| text.chars().take(24).collect::<String>());
    let wrong = format!("takes two numbers above zero, of one kind: not {one:?} and {other:?}");
    match (quantity(predicted, measured), quantity(measured, predicted)) {
        (Ok(Some(predicted)), Ok(Some(measured))) => {
            // To ten digits: f64 rounds decimals, and what is 2 × on paper shall be that here.
            let ratio: f64 = format!("{:.9e}", predicted / measured).parse()?;
            let defined = predicted > 0.0 && measured > 0.0 && ratio.is_normal();
            if defined { Ok(Some(ratio)) } else { Err(wrong.into()) }
        }
        (Ok(_), Ok(_)) => Ok(None),
        _ => Err(wrong.into()),
    }
}

/// How many predictions hold, how many are too low and too high, and their median.
#[derive(Debug, PartialEq)]
pub struct Score {
    pub holds: usize,
    pub low: usize,
    pub high: usize,
    pub median: f64,
}

pub fn score(slots: &[&Slot]) -> Option<Score> {
    let mut ratios: Vec<f64> = slots.iter().filter_map(|slot| slot.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let low = ratios.iter().filter(|ratio| **ratio * HOLDS < 1.0).count();
    let high = ratios.iter().filter(|ratio| **ratio > HOLDS).count();
    // Between two in the middle the geometric mean: 0.1× and 10× are equally wrong, and 1× is right.
    let (below, above) = (ratios.get(ratios.len().checked_sub(1)? / 2)?, ratios[ratios.len() / 2]);
    let median = below.sqrt() * above.sqrt();
    Some(Score { holds: ratios.len() - low - high, low, high, median })
}

/// All that is printed of notes that have slots.
pub fn report(notes: &Notes) -> Vec<String> {
    let (own, slots): (Vec<&Slot>, Vec<&Slot>) =
        notes.slots.iter().partition(|slot| slot.id.starts_with(OWN));
    let mut chapters: BTreeMap<&str, Vec<&Slot>> = BTreeMap::new();
    let mut kinds: BTreeMap<usize, Vec<&Slot>> = BTreeMap::new();
    for slot in &slots {
        chapters.entry(&slot.id[..2]).or_default().push(slot);
        kinds.entry(kind_of(&slot.predicted, &slot.measured)).or_default().push(slot);
    }
    let title = |number: &str| notes.titles.get(number).map_or(number, |title| title).to_string();
    let mut lines = vec![
        format!("A prediction holds within {HOLDS} × of what was measured; the median is that of"),
        "predicted ÷ measured: 1× is right, less is too low.".to_string(),
    ];
    let mut table = |first: &str, rows: Vec<String>| {
        let names = "|  filled | holds | too low | too high |  median |";
        lines.extend([String::new(), format!("| {first:<20} {names}")]);
        lines.push(format!("|{:-<22}|--------:|------:|--------:|---------:|--------:|", ""));
        lines.extend(rows);
    };
    let mut rows: Vec<_> =
        chapters.iter().map(|(two, slots)| score_row(&title(two), slots)).collect();
    rows.push(score_row("all", &slots));
    table("chapter", rows);
    table("kind", kinds.iter().map(|(kind, slots)| score_row(KINDS[*kind].0, slots)).collect());

    let miss = |slot: &Slot| slot.ratio.map_or(1.0, |ratio| ratio.max(1.0 / ratio));
    let mut missed: Vec<_> = slots.iter().filter(|slot| miss(slot) > HOLDS).collect();
    missed.sort_by(|one, other| miss(other).total_cmp(&miss(one)));
    for (slot, place) in missed.into_iter().zip(1..=WIDEST) {
        let Slot { id, name, predicted, measured, ratio, .. } = slot;
        let side = if ratio.is_some_and(|ratio| ratio < 1.0) { "low" } else { "high" };
        lines.extend((place == 1).then(|| "\nWidest misses:".to_string()));
        lines.push(format!("- {} too {side}: {id} {}", as_times(miss(slot)), cut_short(name, 50)));
        lines.push(format!("  {predicted:.20} for {measured:.20}"));
    }
    if !notes.faults.is_empty() {
        lines.push("\nNot counted; notes.md stays as it is, for you to mend:".to_string());
        lines.extend(notes.faults.iter().map(|fault| format!("- {fault}")));
    }
    lines.push(String::new());
    let total = score(&slots);
    if let Some(Score { holds, low, high, .. }) = total {
        lines.push(format!("{holds} of {} predictions hold.", holds + low + high));
    }
    // A kind has a side if more than half of its predictions, and three at least, miss on that side.
    for (kind, slots) in &kinds {
        let Some(Score { holds, low, high, median }) = score(slots) else { continue };
        let (side, misses) = if low > high { ("low", low) } else { ("high", high) };
        if misses >= 3 && 2 * misses > holds + low + high {
            let (kind, mend) = (KINDS[*kind].0, as_times(1.0 / median).replace('×', ""));
            lines.push(format!("You guess {kind} too {side}: multiply the next by {mend}."));
        }
    }
    let open = |slots: &[&Slot]| slots.iter().any(|slot| !slot.done);
    lines.push(match chapters.iter().find(|(_, slots)| open(slots)) {
        Some((two, _)) if notes.titles.contains_key(*two) => {
            // Up to what a hand may have added to the heading.
            let plain = title(two).to_lowercase();
            let plain = plain.split(|sign: char| !sign.is_alphanumeric() && sign != ' ').next();
            let stem = plain.unwrap_or_default().trim().replace(' ', "_");
            format!("Next: {}, guide/{stem}.md", title(two))
        }
        Some((two, _)) => format!("Next: chapter {two}"),
        None if open(&own) && total.is_some() => {
            format!("All is measured; the line below is for {OWN}.")
        }
        None => "All is measured.".to_string(),
    });
    if let Some(Score { holds, low, high, median }) = total {
        let (share, median) = (100 * holds / (holds + low + high), as_times(median));
        lines.push(format!("For notes.md:  15.1 measured {share} %   15.2 measured {median}"));
    }
    lines
}

fn lesson() -> Result<()> {
    let folder = std::env::current_dir().unwrap_or_default();
    let Some(text) = load_notes(Path::new("notes.md"))? else {
        say(format_args!("There is no notes.md in {}.", folder.display()));
        say("In the workbook's folder, `just notes` makes one; so does, without just,");
        say("cp guide/notes_template.md notes.md");
        say("Predict before each run, write down after it, and come back.");
        say("Next: guide/01_object_ladder.md");
        return Ok(());
    };
    let notes = parse(&text);
    if notes.slots.is_empty() {
        notes.faults.iter().for_each(say);
        say("There is no slot in notes.md, such as");
        say("- 02.1 empty submit and wait: predict __ µs  measured __ µs");
        say("Rename the file, and `just notes` makes one with all of them.");
        return Ok(());
    }
    report(&notes).iter().for_each(say);
    Ok(())
}

// ======== The foot: what every lesson needs and none teaches; tests/book holds the copies equal.

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Larger than any notes.
const MOST_BYTES: u64 = 16 << 20;

/// Prints a line. A reader who has seen enough (`| head`) ends the program; a full disk is told.
fn say(line: impl std::fmt::Display) {
    use std::io::{ErrorKind, Write};
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("the output cannot be written: {error}");
        std::process::exit(1);
    }
}

/// The one argument, a whole number such as 1000 or 2^20, if there is one. `--help` prints the head.
fn argument(head: &str, accepted: std::ops::RangeInclusive<u64>) -> Option<u64> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        let head = head.lines().map_while(|line| line.strip_prefix("//!"));
        head.for_each(|line| say(line.strip_prefix(' ').unwrap_or(line)));
        std::process::exit(0);
    }
    let number = |word: &str| match word.split_once('^') {
        Some((base, power)) => base.parse::<u64>().ok()?.checked_pow(power.parse().ok()?),
        None => word.parse().ok(),
    };
    match words.as_slice() {
        [] => return None,
        [word] => number(word).filter(|number| accepted.contains(number)),
        _ => None,
    }
    .or_else(|| {
        let (words, least, most) = (words.join(" "), accepted.start(), accepted.end());
        let range = format!("one whole number from {least} to {most}");
        let range = if accepted.is_empty() { "no argument" } else { &range };
        eprintln!("cannot take {words:?}: it takes {range}; --help says more");
        std::process::exit(2)
    })
}

/// What there is to read, if anything: a file that is not there is none.
pub fn load_notes(path: &Path) -> Result<Option<String>> {
    let unread = |error| format!("notes.md cannot be read: {error}; see to the rights to it");
    let metadata = match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(unread)?,
    };
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        let what = if metadata.is_file() { "too large for notes" } else { "not a file" };
        return Err(format!("notes.md is {what}: rename it, and `just notes` makes one").into());
    }
    let text = String::from_utf8(std::fs::read(path).map_err(unread)?).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].split(|byte| *byte == b'\n');
        let line = line.count();
        format!("notes.md is not UTF-8, from line {line} on: save it anew with the encoding UTF-8")
    })?;
    Ok(Some(text))
}

/// Which of KINDS a slot is about, by the unit that stands behind either number.
fn kind_of(predicted: &str, measured: &str) -> usize {
    let kind = |text: &str| {
        let takes = |unit: &str| quantity(&format!("1 {unit}"), text).is_ok();
        // A text without a unit takes every one.
        let found = KINDS.iter().position(|(_, unit)| takes(unit) && !takes("other"));
        found.unwrap_or(KINDS.len() - 1)
    };
    kind(predicted).min(kind(measured))
}

/// A factor in at most seven signs.
fn as_times(factor: f64) -> String {
    match factor {
        0.01..100.0 => format!("{factor:.2}×"),
        100.0..100_000.0 => format!("{factor:.0}×"),
        _ => format!("{factor:.0e}×"),
    }
}

/// What a hand wrote into a slot: `184.5 µs` in seconds, `11 GB/s` in bytes per second, `2^25 elements`
/// and `1.5×` as they are. Without a unit it has that of `slot`, a text with the slot's unit: `__ µs`.
/// None: not filled in. What could be meant in two ways is an error. Remarks stand in brackets, or behind
/// the unit and without figures. A comma before three digits parts thousands; before others, a fraction.
pub fn quantity(text: &str, slot: &str) -> Result<Option<f64>> {
    const UNITS: [(&str, &str, f64); 13] = [
        ("ns", "s", 1e-9),
        ("us", "s", 1e-6),
        ("µs", "s", 1e-6), // the sign for micro
        ("μs", "s", 1e-6), // the Greek letter
        ("ms", "s", 1e-3),
        ("s", "s", 1.0),
        ("B/s", "B/s", 1.0),
        ("kB/s", "B/s", 1e3),
        ("MB/s", "B/s", 1e6),
        ("GB/s", "B/s", 1e9),
        ("TB/s", "B/s", 1e12),
        ("x", "×", 1.0),
        ("times", "×", 1.0),
    ];
    let number = |word: &str| match word.split_once('^') {
        Some((base, power)) => Some(f64::from(base.parse::<u32>().ok()?).powi(power.parse().ok()?)),
        None => {
            let (whole, fraction) = word.split_at(word.find('.').unwrap_or(word.len()));
            let mut groups = whole.split(',');
            let begins = groups.next().is_some_and(|group| group.len() <= 3 && group != "0");
            if begins && groups.all(|group| group.len() == 3 && group.parse::<u16>().is_ok()) {
                return (whole.replace(',', "") + fraction).parse().ok();
            }
            word.replacen(',', ".", 1).parse().ok()
        }
    };
    // The number, NaN where it cannot be read, and what stands behind it.
    let parts = |text: &str| {
        let text = text.split('(').next().unwrap_or_default().replace(['*', '`'], " ");
        let text = text.replace(['_', '\'', '\u{a0}', '\u{202f}'], "").replace('−', "-");
        let Some(digit) = text.find(|sign: char| sign.is_ascii_digit()) else {
            return (None, text);
        };
        let before = text[..digit].rsplit(char::is_whitespace).next().map_or(0, str::len);
        let word = text[digit - before..].trim_start_matches(['~', '≈', '<', '>', '≤', '≥', '=']);
        let ends = word.char_indices().map(|(at, sign)| at + sign.len_utf8()).take(40);
        let read = ends.filter_map(|end| Some((number(&word[..end])?, end))).last();
        let (number, end) = read.unwrap_or((f64::NAN, word.len()));
        (Some(number), word[end..].to_string())
    };
    let unit = |rest: &str| {
        let inside = |sign: char| sign.is_alphabetic() || ['/', '×', '%'].contains(&sign);
        let word = rest.trim_start().split(|sign| !inside(sign)).next().unwrap_or_default();
        let known = UNITS.iter().find(|(name, ..)| *name == word);
        let (kind, scale) =
            known.map_or((word.trim_end_matches('s'), 1.0), |unit| (unit.1, unit.2));
        (kind.to_string(), scale)
    };
    let ((number, rest), (_, usual)) = (parts(text), parts(slot));
    let ((kind, scale), (wanted, usual)) = (unit(&rest), unit(&usual));
    let one = !rest.contains(|sign: char| sign.is_numeric() || sign == '^');
    let fits = kind.is_empty() || wanted.is_empty() || kind == wanted;
    match number {
        None if (fits && one) || text.contains('_') => Ok(None),
        Some(number) if number.is_finite() && one && fits => {
            Ok(Some(number * if kind.is_empty() { usual } else { scale }))
        }
        _ => {
            let short: String = text.trim().chars().take(40).collect();
            Err(format!("{short:?} is not one number with the slot's unit").into())
        }
    }
}

/// A row of a table: how the predictions of one group held.
fn score_row(name: &str, slots: &[&Slot]) -> String {
    let (mut cells, mut filled) = (<[String; 4]>::default(), 0);
    if let Some(Score { holds, low, high, median }) = score(slots) {
        filled = holds + low + high;
        cells = [holds.to_string(), low.to_string(), high.to_string(), as_times(median)];
    }
    let ([holds, low, high, median], filled) = (cells, format!("{filled}/{}", slots.len()));
    format!("| {name:<20.20} | {filled:>7} | {holds:>5} | {low:>7} | {high:>8} | {median:>7} |")
}

/// A name, or its beginning where it is longer.
fn cut_short(name: &str, most: usize) -> String {
    let cut = name.chars().nth(most).is_some();
    format!("{name:.most$}{}", if cut { "…" } else { "" })
}
