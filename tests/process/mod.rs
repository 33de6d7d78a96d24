//! What every example owes its reader as a process, whatever it teaches. A test file says
//! `mod process;` and, in `EXAMPLE`, what is its example's own; the tests below then run with its.
//!
//! Not proven: that the sentences below a table are true, nor any time in it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::EXAMPLE;

pub struct Example {
    pub name: &'static str,
    /// What it is given to be done soon.
    pub quick: &'static [&'static str],
    /// Arguments that are numbers, but out of its range.
    pub outside: &'static [&'static str],
    /// Arguments in its range that no machine can serve, by the memory or by what it binds.
    pub too_large: &'static [&'static str],
    /// The ids of what it measures, given what it printed.
    pub ids: fn(&str) -> &'static [&'static str],
}

/// What no example takes.
const NO_ARGUMENT: [&str; 11] =
    ["word", "--flag", "", "-1", "1.5", "1e6", "2^", "^2", "2^99", "10^30", "4294967297"];

/// The one example that asks for no adapter, and so prints none.
const WITHOUT_ADAPTER: &str = "15_calibration";

/// How lines begin in every header and table.
const HEADER: [&str; 4] = ["adapter ", "driver ", "wgpu ", "|--"];

/// How the lines begin that drivers write on stderr, about themselves.
const DRIVERS: [&str; 3] = ["error: XDG_RUNTIME_DIR", "MESA", "WARNING: "];

/// What the compiler warns of, in a reader's edits say: cargo repeats it before every run.
static WARNINGS: LazyLock<String> = LazyLock::new(|| {
    let built = cargo("build", EXAMPLE.name).output().expect("cargo starts");
    String::from_utf8_lossy(&built.stderr).into_owned()
});

/// How a process ended and what it wrote, less what drivers and the compiler wrote.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: Vec<String>,
}

/// The turn to use the adapter, one device at a time. A machine without an adapter is told so once,
/// by ending all tests: panics would say it as often as there are tests.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: LazyLock<Mutex<()>> = LazyLock::new(|| {
        if EXAMPLE.name == WITHOUT_ADAPTER {
            return Mutex::new(());
        }
        // Where the tests were carried to without cargo, there is no doctor to ask.
        let doctor = cargo("run", "00_doctor").output().ok();
        if let Some(doctor) = doctor.filter(|doctor| !doctor.status.success()) {
            // Not `eprintln!`, which a test keeps to itself until it has failed.
            let mut stderr = std::io::stderr();
            _ = writeln!(stderr, "\n\nThese tests need a GPU, or a CPU that plays one:");
            _ = stderr.write_all(&doctor.stderr);
            std::process::exit(1);
        }
        Mutex::new(())
    });
    // A test that failed in its turn has nothing to do with the next one.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the example to its end.
pub fn run(arguments: &[&str]) -> Ended {
    ended(cargo("run", EXAMPLE.name).arg("--").args(arguments).output().expect("cargo starts"))
}

/// How it ended with `quick`: one run, for all the tests that read what it printed.
pub fn quick() -> &'static Ended {
    static QUICK: LazyLock<Ended> = LazyLock::new(|| run(EXAMPLE.quick));
    &QUICK
}

/// Through cargo, since `cargo test --test NN` does not build the example anew; with `-q`, so that
/// what is on stderr is the example's.
pub fn cargo(command: &str, example: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([command, "-q", "--example", example]);
    // In a folder without notes.md: two examples read it, and the reader's is no test's business.
    cargo.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    cargo.current_dir(env!("CARGO_TARGET_TMPDIR")).env_remove("RUST_LOG");
    // Said in full: a relative one would be another folder from there.
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."));
    cargo
}

pub fn ended(output: Output) -> Ended {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stderr = stderr.strip_prefix(WARNINGS.as_str()).unwrap_or(&stderr);
    let drivers = |line: &&str| DRIVERS.iter().any(|begin| line.starts_with(begin));
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: stderr.lines().filter(|line| !drivers(line)).map(str::to_string).collect(),
    }
}

/// Whether it ended with this code and one line on stderr that has `part` in it.
#[track_caller]
pub fn says_one_line(ended: &Ended, code: i32, part: &str) {
    let one_line = matches!(ended.stderr.as_slice(), [line] if line.contains(part));
    assert!(
        one_line && ended.code == Some(code),
        "not exit {code} with one line, {part}: {ended:?}"
    );
}

#[test]
fn help_prints_the_head() {
    for arguments in [&["--help"][..], &["-h"], &["1", "--help", "2"]] {
        let ended = run(arguments);
        assert_eq!((ended.code, ended.stderr.len()), (Some(0), 0), "{ended:?}");
        let title = format!("{}:", EXAMPLE.name.replace('_', " "));
        assert!(ended.stdout.starts_with(&title), "{title} does not open {}", ended.stdout);
        let run = format!("Run:   cargo run --example {}", EXAMPLE.name);
        let read = format!("Read:  guide/{}.md", EXAMPLE.name);
        for begin in ["In:    ", "Out:   ", &run, &read] {
            assert!(ended.stdout.lines().any(|line| line.starts_with(begin)), "no line {begin}");
        }
        assert!(!ended.stdout.contains("//!"), "comment signs in {}", ended.stdout);
    }
}

#[test]
fn a_bad_argument_exits_2_with_one_line() {
    for argument in NO_ARGUMENT.iter().chain(EXAMPLE.outside) {
        let ended = run(&[argument]);
        says_one_line(&ended, 2, &format!("cannot take \"{argument}\": it takes "));
        assert_eq!(ended.stdout, "", "{argument}");
    }
    says_one_line(&run(&["14", "15"]), 2, "cannot take \"14 15\": it takes ");
}

#[test]
fn a_size_past_every_machine_exits_1_with_one_line() {
    let _turn = turn();
    for argument in EXAMPLE.too_large {
        says_one_line(&run(&[argument]), 1, "give a smaller size");
    }
}

#[test]
fn no_elements_are_no_error() {
    let _turn = turn();
    // Where it is quickest with none, the last test below sees to that.
    if EXAMPLE.quick != ["0"] && !EXAMPLE.outside.contains(&"0") {
        let ended = run(&["0"]);
        assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
        assert!(!ended.stdout.contains("NaN"), "{ended:?}");
    }
}

#[test]
fn an_unknown_adapter_exits_1_and_names_those_seen() {
    if EXAMPLE.name == WITHOUT_ADAPTER {
        return;
    }
    let _turn = turn();
    let mut cargo = cargo("run", EXAMPLE.name);
    let output = cargo.env("WGPU_ADAPTER_NAME", "no such adapter").output();
    says_one_line(&ended(output.expect("cargo starts")), 1, "none of the adapters here: [\"");
}

/// No example compiles wgpu's GL in, so that with it alone there is no adapter on any system.
#[test]
fn no_adapter_exits_1_with_a_cure() {
    if EXAMPLE.name == WITHOUT_ADAPTER {
        return;
    }
    let mut cargo = cargo("run", EXAMPLE.name);
    let output = cargo.env("WGPU_BACKEND", "gl").env_remove("WGPU_ADAPTER_NAME").output();
    says_one_line(&ended(output.expect("cargo starts")), 1, "nset WGPU_BACKEND");
}

/// As in `| head -1`.
#[test]
fn a_closed_stdout_ends_it_quietly() {
    let _turn = turn();
    let mut cargo = cargo("run", EXAMPLE.name);
    cargo.args(EXAMPLE.quick).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = cargo.spawn().expect("cargo starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let ended = ended(child.wait_with_output().expect("it ends"));
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "after {line}: {ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_stdout_exits_1_with_one_line() {
    let _turn = turn();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = cargo("run", EXAMPLE.name).args(EXAMPLE.quick).stdout(full).output();
    says_one_line(&ended(output.expect("cargo starts")), 1, "cannot be written");
}

#[test]
fn a_run_prints_its_header_a_table_and_its_ids() {
    let _turn = turn();
    let ended = quick();
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    // The header is an adapter's, and the one example without has no table without notes.
    let begins: &[&str] = if EXAMPLE.name == WITHOUT_ADAPTER { &[] } else { &HEADER };
    for begin in begins {
        // A table's second line may align its first column to the right.
        let begins = |line: &&str| line.replace("-:", "--").starts_with(begin);
        assert!(lines.iter().any(begins), "no line {begin} in {}", ended.stdout);
    }
    for row in lines.iter().filter(|line| line.starts_with('|')) {
        assert!(row.chars().count() <= 80, "more than 80 columns: {row}");
    }
    let last = lines.last().and_then(|line| line.strip_prefix("For notes.md:"));
    let words: Vec<&str> = last.unwrap_or_default().split_whitespace().collect();
    let mut ids = Vec::new();
    for measured in words.windows(3).filter(|words| words[1] == "measured") {
        // The word for what this adapter cannot measure.
        let none = measured[2] == "none";
        let number = measured[2].trim_end_matches('×').parse::<f64>();
        let finite = number.is_ok_and(f64::is_finite);
        assert!(none || finite, "not a measurement: {}", measured.join(" "));
        ids.push(measured[0]);
    }
    assert_eq!(ids, (EXAMPLE.ids)(&ended.stdout), "ids in the last line of {}", ended.stdout);
}
