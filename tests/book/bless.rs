//! `just bless`: makes the book's mechanical repairs, says which they were, and what is left for an author.

use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    match bless() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the book is true afterwards.
fn bless() -> Result<bool, String> {
    let root = book::root();
    let before = book::Book::load(&root)?;
    let mut book = before.clone();
    let repaired = book::guide::mend::bless(&mut book);
    for (path, text) in
        book.files.iter().filter(|(path, text)| before.files.get(*path) != Some(text))
    {
        let file = root.join(path);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all);
        written
            .and_then(|()| fs::write(file, text))
            .map_err(|e| format!("cannot write {path}: {e}"))?;
    }
    for fault in &repaired {
        println!("repaired {}: {}", fault.at, fault.what);
    }
    let left = book::faults(&book);
    for fault in &left {
        println!("{fault}");
    }
    println!("{} repaired, {} left", repaired.len(), left.len());
    Ok(left.is_empty())
}
