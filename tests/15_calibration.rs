//! 15: what a hand writes is read as it was meant, or named; and what is read is counted right.
//!
//! Not proven: that a factor of 2 is the right measure of a prediction, nor that yours get better.

use std::path::{Path, PathBuf};

#[path = "../examples/15_calibration.rs"]
mod example;
mod process;

use example::{Notes, Score, Slot, load_notes, parse, quantity, ratio, report, score};

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "15_calibration",
    quick: &[],
    outside: &["0", "1"],
    too_large: &[],
    // Where it runs there are no notes; what it makes of some, the tests below see.
    ids: |printed| if printed.contains("For notes.md:") { &["15.1", "15.2"] } else { &[] },
};

const TEMPLATE: &str = include_str!("../guide/notes_template.md");

/// Notes of one chapter with these lines.
fn notes(lines: &str) -> Notes {
    parse(&format!("# My notes\n\n## 02 Fixed tax\n\n{lines}\n"))
}

/// The only ratio, or what is wrong in line 5.
#[track_caller]
fn one(line: &str) -> Result<Option<f64>, String> {
    let notes = notes(line);
    match notes.faults.as_slice() {
        [] => Ok(notes.slots.first().and_then(|slot| slot.ratio)),
        [fault] => Err(fault.strip_prefix("line 5: ").expect("its line").to_string()),
        more => panic!("{more:?} of {line}"),
    }
}

fn whole(notes: &Notes) -> Option<Score> {
    score(&notes.slots.iter().collect::<Vec<&Slot>>())
}

#[test]
fn quantities_are_read_as_they_were_meant() {
    for (text, slot, wanted) in [
        ("184.5 µs", "__ µs", Some(184.5e-6)),
        // With the Greek letter, without any, glued, and with a space that does not break.
        ("184.5 μs", "__ µs", Some(184.5e-6)),
        ("184.5us", "__ µs", Some(184.5e-6)),
        ("184.5\u{a0}µs", "__ µs", Some(184.5e-6)),
        ("0.1845 ms", "__ µs", Some(184.5e-6)),
        ("2 s", "µs", Some(2.0)),
        ("40 ns", "µs", Some(40e-9)),
        ("11 GB/s", "__ GB/s", Some(11e9)),
        ("850 MB/s", "__ GB/s", Some(850e6)),
        ("1.5×", "__ ×", Some(1.5)),
        ("1.5 x", "×", Some(1.5)),
        ("40 %", "%", Some(40.0)),
        ("2^25 elements", "elements", Some(33554432.0)),
        ("67,108,864", "elements", Some(67108864.0)),
        ("67_108_864", "elements", Some(67108864.0)),
        ("67'108'864", "elements", Some(67108864.0)),
        ("67\u{202f}108\u{202f}864", "elements", Some(67108864.0)),
        ("1,234.5", "µs", Some(1234.5e-6)),
        ("3,2 ms", "µs", Some(3.2e-3)),
        ("0,125", "×", Some(0.125)),
        ("1e3", "elements", Some(1000.0)),
        (".5 ms", "µs", Some(0.5e-3)),
        ("8 lane", "lanes", Some(8.0)),
        ("**30** µs", "µs", Some(30e-6)),
        ("__30__ µs", "µs", Some(30e-6)),
        ("`30 µs`", "µs", Some(30e-6)),
        ("~30", "µs", Some(30e-6)),
        ("about 30 µs on battery", "µs", Some(30e-6)),
        ("30 µs (31 at first)", "µs", Some(30e-6)),
        // Without a unit, that of the slot, and of what stands in the slot's other half.
        ("30", "12.5 ms (at 2^20)", Some(30e-3)),
        ("30 ms", "12.5", Some(30e-3)),
        ("−5 µs", "µs", Some(-5e-6)),
        ("0", "µs", Some(0.0)),
        ("__ µs", "µs", None),
        ("_", "µs", None),
        ("µs", "µs", None),
        ("?", "µs", None),
        ("", "", None),
    ] {
        let read = quantity(text, slot).unwrap_or_else(|error| panic!("{text}: {error}"));
        let same = match (read, wanted) {
            (Some(read), Some(wanted)) => (read - wanted).abs() <= 1e-12 * wanted.abs(),
            (read, wanted) => read == wanted,
        };
        assert!(same, "{text} in {slot} is {read:?}, not {wanted:?}");
    }
}

#[test]
fn what_could_be_meant_in_two_ways_is_refused() {
    let long = "9".repeat(1 << 20);
    for (text, slot) in [
        ("200-300 µs", "µs"),
        ("200 – 300 µs", "µs"),
        ("200 µs, later 300", "µs"),
        ("30 ± 2 µs", "µs"),
        ("~~30~~ 40 µs", "µs"),
        ("2^25 + 1 elements", "elements"),
        ("2²⁵", "elements"),
        ("2**125", "elements"),
        ("67 108 864", "elements"),
        ("1.234,5", "µs"),
        ("1/3", "×"),
        ("10k", "elements"),
        ("12 GB/s", "µs"),
        ("12 Gb/s", "GB/s"),
        ("30 µs", "GB/s"),
        ("30 parsecs", "µs"),
        ("lots", "µs"),
        ("inf", "µs"),
        ("NaN µs", "µs"),
        ("1e400 µs", "µs"),
        ("2^5000", "elements"),
        ("2^99999999999999999999", "elements"),
        (long.as_str(), "µs"),
    ] {
        let error = quantity(text, slot).expect_err(text).to_string();
        assert!(error.ends_with("is not one number with the slot's unit"), "{error}");
        assert!(error.len() < 100, "{error}");
    }
}

#[test]
fn a_ratio_compares_whatever_the_units_and_is_undefined_at_zero_and_below() {
    for (predicted, measured, wanted) in [
        ("0.06 ms", "30 µs", Some(2.0)),
        ("60", "30 µs", Some(2.0)),
        ("60 µs", "30", Some(2.0)),
        ("60", "30", Some(2.0)),
        ("0.3 µs", "0.1 µs", Some(3.0)),
        ("__ µs", "30 µs", None),
        ("60 µs", "__ µs", None),
        ("", "", None),
    ] {
        assert_eq!(ratio(predicted, measured).unwrap(), wanted, "{predicted}, {measured}");
    }
    for (predicted, measured) in
        [("0", "30 µs"), ("30 µs", "0"), ("-5", "30 µs"), ("5", "-3 µs"), ("1e300", "1e-300")]
    {
        let error = ratio(predicted, measured).unwrap_err().to_string();
        let wanted = format!("not {predicted:?} and {measured:?}");
        assert!(error.starts_with("takes two numbers above zero") && error.ends_with(&wanted));
    }
}

#[test]
fn slots_are_found_however_they_are_spaced_and_marked() {
    for line in [
        "- 02.1 empty submit and wait: predict 60 µs  measured 30 µs",
        "-   02.1\tempty submit and wait:predict\t60 µs measured\u{a0}30 µs   ",
        "* 02.1 empty submit and wait: predict 60 µs; measured 30 µs.",
        "  - **02.1** empty submit and wait: **predict** 60 µs **measured** 30 µs",
        "- [x] 02.1 empty submit and wait: predict 60 µs  measured 30 µs",
        "02.1 empty submit and wait: Predict: 60 µs, Measured: 30 µs",
        "- 02.1: predicted 60 µs, measured 30 µs",
        "- 02.1 empty submit and wait: predict __60__ µs  measured __30__ µs",
        "- 02.1 empty submit and wait: predict 60 µs (as measured before)  measured 30 µs",
    ] {
        assert_eq!(one(line), Ok(Some(2.0)), "{line}");
    }
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let text = "- 02.1 a: predict 60 µs  measured 30 µs\n- 02.2 b: predict 1 µs  measured 30\n";
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let (plain, windows) = (parse(text), parse(&windows));
    assert_eq!(report(&plain), report(&windows));
    assert_eq!(whole(&plain).map(|score| (score.holds, score.low)), Some((1, 1)));
}

#[test]
fn malformed_lines_are_named_with_their_line() {
    let two = "02.1 takes two numbers above zero, of one kind: not ";
    let lacks = "02.1 lacks `predict` and `measured` behind it";
    for (line, wanted) in [
        ("- 02.1 a: predict 12 GB/s  measured 30 µs", &*format!("{two}\"12 GB/s\" and \"30 µs\"")),
        ("- 02.1 a: predict 60 µs  measured lots", &format!("{two}\"60 µs\" and \"lots\"")),
        ("- 02.1 a: predict 60 µs\n  measured 30 µs", lacks),
        ("- 02.1 a:\n  predict 60 µs  measured 30 µs", lacks),
        ("- 02.1 a", lacks),
        ("- 02.1 a: measured 30 µs  predict 60 µs", lacks),
        ("- 2.1 a: predict 60 µs  measured 30 µs", " has no id, such as 02.1, in front"),
        ("- a: predict 60 µs  measured 30 µs", " has no id, such as 02.1, in front"),
        ("- 02.1 a: predict 0 µs  measured 30 µs", &format!("{two}\"0 µs\" and \"30 µs\"")),
        (
            "- 02.1 a: predict 3 µs  measured 0 µs",
            "02.1 was measured as 0, and has no ratio: nothing to mend",
        ),
    ] {
        assert_eq!(one(line), Err(wanted.to_string()), "{line}");
    }
    let twice =
        notes("- 02.1 a: predict 60 µs  measured 30 µs\n\n- 02.1 a: predict 1 µs  measured 30 µs");
    assert_eq!(twice.faults, ["line 7: 02.1 is in line 5 already, and that one counts"]);
    assert_eq!(twice.slots.len(), 1);
    assert_eq!(twice.slots[0].ratio, Some(2.0));
}

/// A slot that is named stays one of its chapter's.
#[test]
fn a_malformed_slot_is_counted_among_the_slots_and_not_among_the_pairs() {
    let notes = notes("- 02.1 a: predict lots  measured 30 µs\n- 02.2 b: predict 6  measured 30");
    assert!(report(&notes).iter().any(|row| row.starts_with("| all ") && row.contains(" 1/2 |")));
}

#[test]
fn what_is_no_slot_is_passed_over() {
    for line in [
        "Before a run, write a number into each `predict __`; after it, one into each `measured __`.",
        "- card.submit empty submit and wait: 30 µs",
        "- 02.A answer: 60 µs predicted, since the 30 µs are paid twice",
        "- 12.5 GB/s is what the other card reads",
        "For notes.md:  02.1 measured 11.1 µs   02.2 measured 184.5 µs",
        "02",
        "- .",
        "- 02.",
        "::::",
        "µ",
    ] {
        let notes = notes(line);
        assert!(notes.slots.is_empty() && notes.faults.is_empty(), "{line}: {:?}", notes.faults);
    }
}

#[test]
fn a_prediction_holds_within_twice_and_half() {
    for (ratios, wanted) in [
        (&[][..], None),
        (&[1.0][..], Some((1, 0, 0, 1.0))),
        (&[2.0, 0.5], Some((2, 0, 0, 1.0))),
        (&[2.01, 0.499], Some((0, 1, 1, f64::sqrt(2.01 * 0.499)))),
        (&[10.0, 0.1], Some((0, 1, 1, 1.0))),
        (&[4.0, 1.0, 100.0], Some((1, 0, 2, 4.0))),
        (&[0.25, 1.0, 0.25, 100.0], Some((1, 2, 1, 0.5))),
    ] {
        let line =
            |(ratio, k): (&f64, usize)| format!("- 02.{k} a: predict {ratio} µs  measured 1 µs\n");
        let lines: String = ratios.iter().zip(1..).map(line).collect();
        let found = whole(&notes(&lines));
        let Some((holds, low, high, median)) = wanted else {
            assert_eq!(found, None);
            continue;
        };
        let found = found.expect("there are ratios");
        assert_eq!((found.holds, found.low, found.high), (holds, low, high), "{ratios:?}");
        assert!((found.median / median - 1.0).abs() < 1e-9, "{ratios:?}: {}", found.median);
    }
}

/// The template with numbers in the slots that `fill` gives some.
fn filled(fill: impl Fn(&str) -> Option<(&'static str, &'static str)>) -> String {
    let line = |line: &str| {
        let id = line.strip_prefix("- ").and_then(|rest| rest.split(' ').next());
        let fields = id.filter(|_| line.contains("predict __")).and_then(&fill);
        let Some((predict, measured)) = fields else { return format!("{line}\n") };
        let line = line.replacen("predict __", &format!("predict {predict}"), 1);
        format!("{}\n", line.replacen("measured __", &format!("measured {measured}"), 1))
    };
    TEMPLATE.lines().map(line).collect()
}

fn next(text: &str) -> String {
    let lines = report(&parse(text));
    let next = |line: &&String| line.starts_with("Next: ") || line.starts_with("All is measured");
    lines.iter().find(next).cloned().unwrap_or_default()
}

#[test]
fn a_fresh_template_has_every_slot_and_no_fault() {
    let notes = parse(TEMPLATE);
    let slots = TEMPLATE.lines().filter(|line| line.contains(": predict __")).count();
    assert_eq!((notes.slots.len(), notes.faults.len()), (slots, 0), "{:?}", notes.faults);
    assert!(notes.slots.iter().all(|slot| slot.ratio.is_none() && !slot.done));
    assert_eq!(next(TEMPLATE), "Next: 01 Object ladder, guide/01_object_ladder.md");
    assert!(report(&notes).iter().all(|line| !line.starts_with("For notes.md")));
}

#[test]
fn half_filled_notes_name_the_first_chapter_with_something_unmeasured() {
    let text = filled(|id| (id < "03").then_some(("10", "10")));
    assert_eq!(next(&text), "Next: 03 Hoisted setup, guide/03_hoisted_setup.md");
    // What cannot be had on an adapter keeps nobody.
    let text = filled(|id| (id < "03").then_some(("10", if id == "02.2" { "none" } else { "10" })));
    assert_eq!(next(&text), "Next: 03 Hoisted setup, guide/03_hoisted_setup.md");
    let text = filled(|id| (id < "03" && id != "02.2").then_some(("10", "10")));
    assert_eq!(next(&text), "Next: 02 Fixed tax, guide/02_fixed_tax.md");
    // A prediction that was left out does not bring a chapter back.
    let text = filled(|id| (id < "03").then_some(("__", "10")));
    assert_eq!(next(&text), "Next: 03 Hoisted setup, guide/03_hoisted_setup.md");
}

/// Its own slots are about the rest, and count among nothing.
#[test]
fn full_notes_count_all_but_its_own_and_say_so() {
    let rest = filled(|id| (id < "15").then_some(("10", "10")));
    let lines = report(&parse(&rest));
    let slots = parse(&rest).slots.iter().filter(|slot| !slot.id.starts_with("15")).count();
    let all = lines.iter().find(|row| row.starts_with("| all ")).unwrap();
    assert!(all.contains(&format!(" {slots}/{slots} |")), "{all}");
    assert!(!lines.iter().any(|row| row.starts_with("| 15")), "{lines:?}");
    assert_eq!(next(&rest), "All is measured; the line below is for 15.");
    assert_eq!(
        lines.last().map(String::as_str),
        Some("For notes.md:  15.1 measured 100 %   15.2 measured 1.00×")
    );
    for own in [("1", "1000"), ("50", "0")] {
        let full = filled(|id| Some(if id < "15" { ("10", "10") } else { own }));
        assert_eq!((next(&full), parse(&full).faults), ("All is measured.".to_string(), vec![]));
        assert_eq!(report(&parse(&full)).last(), lines.last());
    }
}

#[test]
fn a_side_is_named_where_most_of_a_kind_miss_on_it() {
    let text = "- 02.1 a: predict 1 µs  measured 4 µs\n- 02.2 b: predict 2 ms  measured 8 ms\n\
                - 02.3 c: predict 3 s  measured 15 s\n- 02.4 d: predict 1 GB/s  measured 1 GB/s\n";
    let lines = report(&notes(text));
    let wanted = "You guess times too low: multiply the next by 4.00.";
    assert!(lines.iter().any(|line| line == wanted), "{lines:?}");
    for row in [
        "| times                |     3/3 |     0 |       3 |        0 |   0.25× |",
        "| bandwidths           |     1/1 |     1 |       0 |        0 |   1.00× |",
        "- 5.00× too low: 02.3 c",
        "- 4.00× too low: 02.1 a",
    ] {
        assert!(lines.iter().any(|line| line == row), "{row} in {lines:?}");
    }
    // Two on one side are chance.
    let lines = report(&notes(text.split("- 02.3").next().unwrap()));
    assert!(!lines.iter().any(|line| line.starts_with("You guess")), "{lines:?}");
}

#[test]
fn rows_stay_within_80_columns_whatever_the_numbers() {
    let mut text = String::from("## 02 A heading that is far too long for its column\n");
    for (k, number) in ["1e-200", "1e-5", "0.004", "0.5", "33", "99999", "12345678", "1e200"]
        .iter()
        .zip(1..)
        .map(|(number, k)| (k, number))
    {
        text += &format!("- 02.{k} a: predict {number} ms  measured 1 ms\n");
    }
    for line in report(&parse(&text)) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// Bytes without sense: no panic, and no end that does not come.
#[test]
fn no_text_brings_it_down() {
    let words = [
        "- ", "02.1", " ", "predict", "measured", ":", "µs", "_", "^", ",", ".", "-", "(", "9",
        "\n", "##", "é", "\u{feff}", "×", "*", "2^25", "\t", "🦀",
    ];
    let mut state = 1u32;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..24 {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            text += words[(state >> 16) as usize % words.len()];
        }
        report(&parse(&text));
    }
    let many = "- 02.1 a: predict 1 µs  measured 2 µs\n".repeat(100_000);
    assert_eq!(parse(&many).faults.len(), 99_999);
}

/// A folder of this test's own with this in its notes.md, if anything.
fn folder(name: &str, notes: Option<&[u8]>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("15_{name}"));
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    if let Some(notes) = notes {
        std::fs::write(folder.join("notes.md"), notes).unwrap();
    }
    folder
}

/// Runs it in a folder of its own.
fn run_in(folder: &Path) -> process::Ended {
    let mut cargo = process::cargo("run", EXAMPLE.name);
    process::ended(cargo.current_dir(folder).output().expect("cargo starts"))
}

#[test]
fn without_notes_it_says_how_to_start_them_and_that_is_no_failure() {
    for (name, notes, wanted) in [
        ("none", None, "There is no notes.md in "),
        ("empty", Some(&b""[..]), "There is no slot in notes.md"),
        ("mark", Some("\u{feff}\r\n".as_bytes()), "There is no slot in notes.md"),
    ] {
        let ended = run_in(&folder(name, notes));
        assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{name}: {ended:?}");
        assert!(ended.stdout.starts_with(wanted), "{name}: {ended:?}");
        assert!(ended.stdout.contains("`just notes`"), "{name}: {ended:?}");
    }
}

#[test]
fn notes_are_scored_and_stay_as_they_are() {
    let text = filled(|id| (id < "03").then_some(("10", "10"))).replace('\n', "\r\n");
    let folder = folder("half", Some(text.as_bytes()));
    let ended = run_in(&folder);
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
    let printed: Vec<&str> = ended.stdout.lines().collect();
    let expected = report(&parse(&text)).join("\n");
    assert_eq!(printed.join("\n"), expected);
    assert_eq!(std::fs::read_to_string(folder.join("notes.md")).unwrap(), text);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn notes_that_cannot_be_read_exit_1_with_one_line() {
    let utf16: Vec<u8> = "- 02.1".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16 = [&[0xff, 0xfe], utf16.as_slice()].concat();
    process::says_one_line(
        &run_in(&folder("utf16", Some(&utf16))),
        1,
        "not UTF-8, from line 1 on: save it anew",
    );
    let latin =
        folder("latin", Some(b"# My notes\n\n- 02.1 a: predict 3 \xb5s  measured 4 \xb5s\n"));
    process::says_one_line(&run_in(&latin), 1, "not UTF-8, from line 3 on: save it anew");
    let inner = folder("folder", None);
    std::fs::create_dir(inner.join("notes.md")).unwrap();
    process::says_one_line(&run_in(&inner), 1, "notes.md is not a file: rename it");
    let large = folder("large", None);
    let file = std::fs::File::create(large.join("notes.md")).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    process::says_one_line(&run_in(&large), 1, "notes.md is too large for notes");
    assert!(load_notes(&large.join("notes.md")).is_err());
    std::fs::remove_dir_all(large).unwrap();
}

#[test]
fn the_widest_misses_come_first_each_with_its_side() {
    let text = "- 02.1 a: predict 3 µs  measured 1 µs\n- 02.2 b: predict 1 µs  measured 100 µs\n\
                - 02.3 c: predict 5 µs  measured 1 µs\n- 02.4 d: predict 10 µs  measured 1 µs\n";
    let lines = report(&notes(text));
    let misses: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("- ")).collect();
    let wanted = ["100× too low: 02.2 b", "10.00× too high: 02.4 d", "5.00× too high: 02.3 c"];
    assert_eq!(misses, wanted);
}

/// Where a hand left out one unit, the other number's says the kind.
#[test]
fn one_unit_tells_the_kind_of_both() {
    for pair in ["predict 1  measured 4 µs", "predict 1 µs  measured 4"] {
        let lines = report(&notes(&format!("- 02.1 a: {pair}\n")));
        assert!(lines.iter().any(|line| line.starts_with("| times ")), "{pair}: {lines:?}");
    }
}

#[test]
fn an_edited_heading_and_notes_without_predictions_lead_on() {
    let heading = TEMPLATE.replace("## 01 Object ladder", "## 01 Object ladder (done)");
    assert_eq!(next(&heading), "Next: 01 Object ladder (done), guide/01_object_ladder.md");
    // Nothing predicted is nothing to score: then there is no line for its own slots.
    let measured = filled(|id| (id < "15").then_some(("__", "10")));
    assert_eq!(next(&measured), "All is measured.");
}
