//! Records what `init` did, so that it can be undone to the byte: `installed.json` in the state
//! folder, and beside it the files' former bytes, by their digest.

use std::io;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_runtime::durable_file;
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;

/// `installed.json`
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct InstallRecord {
    version: u32,
    pub(crate) files: Vec<InitWrittenFile>,
    #[serde(skip)]
    state: PathBuf,
}

/// A file that `init` wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InitWrittenFile {
    pub(crate) path: PathBuf,
    pub(crate) what: InitWrittenFileKind,
    pub(crate) scope: InstallScope,
    /// The agent it is for; none = for all.
    pub(crate) agent: Option<String>,
    /// The repo it was written from.
    pub(crate) repo: Option<PathBuf>,
    /// Digest of its bytes before; none = there was no file.
    pub(crate) before: Option<String>,
    /// Digest of its bytes after.
    pub(crate) after: String,
    /// The inserted texts.
    pub(crate) inserted: Vec<String>,
    /// Folders that were made for it.
    pub(crate) folders: Vec<PathBuf>,
}

/// Whose files hooks go into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InstallScope {
    /// This person's, in this repo.
    Person,
    /// The committed settings, which everybody who clones the repo gets.
    Shared,
    /// This person's, for all repos.
    User,
}

/// How its entries are distinguished from the rest of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InitWrittenFileKind {
    /// Hook entries that call us.
    Hooks,
    /// Reviews of these handlers.
    Reviews(Vec<String>),
    /// Lines.
    Lines,
    /// The whole file is ours.
    Config,
    /// A folder that holds nothing but our reports.
    Reports,
}

pub(crate) fn text_digest(text: &str) -> String {
    Digest::hash_bytes(text.as_bytes()).to_hex()
}

impl InstallRecord {
    /// Opens the record in this state folder; an empty one if there is none.
    pub(crate) fn open_or_create_record_file(state: &Path) -> io::Result<Self> {
        let file = state.join("installed.json");
        let wrong = |error: &dyn std::fmt::Display| {
            io::Error::other(format!(
                "{}: {error}; take it away if it is beyond repair",
                file.display()
            ))
        };
        let bytes = durable_file::read_regular_file(&file, durable_file::MAX_CONFIG_BYTES)
            .map_err(|error| wrong(&error))?;
        let mut installed: Self = match bytes {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?,
            None => Self::default(),
        };
        // Undoing by a record that is only half understood could leave entries behind, so it is
        // refused.
        if installed.version > VERSION {
            return Err(io::Error::other(
                "installed.json was written by a newer checkrein; use that one",
            ));
        }
        installed.version = VERSION;
        installed.state = state.to_owned();
        Ok(installed)
    }

    pub(crate) fn find_installed_file_record(&self, path: &Path) -> Option<&InitWrittenFile> {
        self.files.iter().find(|written| written.path == path)
    }

    /// Keeps a file's former bytes and returns their digest.
    pub(crate) fn back_up_settings_text(&self, text: &str) -> io::Result<String> {
        let digest = text_digest(text);
        // Named by its digest, the same text is kept once, however often `init` runs.
        durable_file::write_atomically(&self.settings_backup_path(&digest), text.as_bytes())?;
        Ok(digest)
    }

    /// Returns a file's former bytes.
    pub(crate) fn read_settings_backup(&self, digest: &str) -> io::Result<String> {
        let text = durable_file::read_limited_text_file(
            &self.settings_backup_path(digest),
            durable_file::MAX_CONFIG_BYTES,
        )?;
        text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn settings_backup_path(&self, digest: &str) -> PathBuf {
        self.state.join("installed").join(digest)
    }

    /// Records a file, in place of an older record of it.
    pub(crate) fn record_installed_file(&mut self, written: InitWrittenFile) -> io::Result<()> {
        self.files.retain(|other| other.path != written.path);
        self.files.push(written);
        // Saved after each file: an `init` that is killed half way can be undone for what it has
        // written.
        self.save_installed_files()
    }

    /// Forgets a file.
    pub(crate) fn forget_installed_file(&mut self, path: &Path) -> io::Result<()> {
        self.files.retain(|written| written.path != path);
        self.save_installed_files()
    }

    fn save_installed_files(&self) -> io::Result<()> {
        let file = self.state.join("installed.json");
        if self.files.is_empty() {
            durable_file::remove_file_if_present(&file)?;
            // The copies that the record named are useless without it.
            let _ = std::fs::remove_dir_all(self.state.join("installed"));
            return Ok(());
        }
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        durable_file::write_atomically(&file, text.as_bytes())
    }
}
