//! The sources of wgpu's crates, as cargo unpacked them: `$CARGO_HOME/registry/src/REGISTRY/CRATE-VERSION`. Read there
//! and not through `cargo metadata`, which wants the network for the packages of other platforms.

use crate::Book;
use std::path::PathBuf;
use std::{env, fs};

const CRATES: [&str; 7] =
    ["wgpu", "wgpu-core", "wgpu-hal", "wgpu-types", "wgpu-naga-bridge", "naga", "naga-types"];

/// The folders that hold `CRATE-VERSION` folders.
pub struct Crates {
    pub registries: Vec<PathBuf>,
}

pub enum Absent {
    /// Cargo has not unpacked this version of the crate, or Cargo.lock does not name it.
    Crate,
    /// The crate is there, and has no such file.
    File,
}

impl Crates {
    pub fn of_cargo() -> Crates {
        let home = env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(env::home_dir()?.join(".cargo")));
        let registries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
        Crates {
            registries: registries
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect(),
        }
    }

    /// The text of a file named by crate and path, at the version in Cargo.lock.
    pub fn text(&self, book: &Book, path: &str) -> Result<String, Absent> {
        let (package, rest) = path.split_once('/').ok_or(Absent::File)?;
        let version = book.locked_version(package).ok_or(Absent::Crate)?;
        let folders =
            self.registries.iter().map(|registry| registry.join(format!("{package}-{version}")));
        let folder = folders.into_iter().find(|folder| folder.is_dir()).ok_or(Absent::Crate)?;
        fs::read_to_string(folder.join(rest)).map_err(|_| Absent::File)
    }
}

/// Whether a path names a file of one of wgpu's crates.
pub fn is_wgpu(path: &str) -> bool {
    path.split_once('/').is_some_and(|(package, _)| CRATES.contains(&package))
}
