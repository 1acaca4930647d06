//! The one place in `init` that writes. It records first what was there; in a dry run it shows the
//! difference and writes nothing.

use std::path::Path;

use similar::TextDiff;

use super::InitFoldersAndScope;
use crate::settings::install_record::{
    InitWrittenFile, InitWrittenFileKind, InstallRecord, text_digest,
};
use crate::settings::settings_file;
use crate::ui;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::style::TextStyle;

/// The folder for reports of checks.
const REPORTS_FOLDER: &str = ".checkrein";

/// Writes files and records them.
pub(super) struct InitWriter<'a> {
    pub(super) site: &'a InitFoldersAndScope,
    pub(super) installed: &'a mut InstallRecord,
    pub(super) dry_run: bool,
}

impl<'a> InitWriter<'a> {
    pub(super) fn new(
        site: &'a InitFoldersAndScope,
        installed: &'a mut InstallRecord,
        dry_run: bool,
    ) -> Self {
        Self {
            site,
            installed,
            dry_run,
        }
    }

    /// Writes `after` in place of `now`. The second text of `now` is the file without anything of
    /// ours, which `--undo` goes back to.
    #[expect(
        clippy::too_many_arguments,
        reason = "one row of the record, said once"
    )]
    pub(super) fn write_and_record_init_file(
        &mut self,
        path: &Path,
        now: Option<(&str, Option<&str>)>,
        after: String,
        inserted: Vec<String>,
        what: InitWrittenFileKind,
        agent: Option<&str>,
        about: &str,
    ) -> Result<(), CommandError> {
        let shown = self.site.path_text_from_root_or_home(path);
        // A second `init` must not look like a change.
        if now.is_some_and(|(now, _)| now == after) {
            self.print_file_left_unchanged(path, "nothing to change");
            return Ok(());
        }
        if self.dry_run {
            print_diff(&shown, now.map(|(now, _)| now), &after);
            return Ok(());
        }
        let failed = |error: std::io::Error| {
            CommandError::cli_failure_error(format!("{}: {error}", path.display()))
        };
        // A second `init` keeps the folders that the first one made, so that undo removes them.
        let known = self.installed.find_installed_file_record(path).cloned();
        let bare = now.and_then(|(_, bare)| bare);
        let before = match bare {
            Some(bare) => Some(self.installed.back_up_settings_text(bare).map_err(failed)?),
            None => None,
        };
        let mut written = InitWrittenFile {
            path: path.to_owned(),
            what,
            scope: self.site.scope,
            agent: agent.map(str::to_owned),
            repo: Some(self.site.root.clone()),
            before,
            after: text_digest(&after),
            inserted,
            folders: known.map(|known| known.folders).unwrap_or_default(),
        };
        // Recorded before it happens: undo finds out by itself if it never did.
        self.installed
            .record_installed_file(written.clone())
            .map_err(failed)?;
        let made = settings_file::write_atomically(path, &after).map_err(failed)?;
        // Which folders were missing is known only after the writing.
        if !made.is_empty() {
            written.folders = made;
            self.installed
                .record_installed_file(written)
                .map_err(failed)?;
        }
        let verb = if now.is_some() { "changed" } else { "wrote" };
        print_written_file_line(TextStyle::Good, verb, &shown, about);
        Ok(())
    }

    /// Records the folder for reports if our checks make it; returns whether they do.
    pub(super) fn record_reports_folder_for_undo(&mut self) -> Result<bool, CommandError> {
        let path = self.site.root.join(REPORTS_FOLDER);
        if path.exists() {
            return Ok(false);
        }
        let written = InitWrittenFile {
            path,
            what: InitWrittenFileKind::Reports,
            scope: self.site.scope,
            agent: None,
            repo: Some(self.site.root.clone()),
            before: None,
            after: String::new(),
            inserted: Vec::new(),
            folders: Vec::new(),
        };
        self.installed.record_installed_file(written)?;
        Ok(true)
    }

    /// Removes the folder for reports if this run made it.
    pub(super) fn remove_reports_folder(&mut self, made: bool) -> Result<(), CommandError> {
        let path = self.site.root.join(REPORTS_FOLDER);
        if !made {
            return Ok(());
        }
        if path.is_dir() {
            std::fs::remove_dir_all(&path)?;
        }
        Ok(self.installed.forget_installed_file(&path)?)
    }

    /// Says that a file stays as it is, and why.
    pub(super) fn print_file_left_unchanged(&self, path: &Path, why: &str) {
        print_written_file_line(
            TextStyle::Dim,
            "kept",
            &self.site.path_text_from_root_or_home(path),
            why,
        );
    }
}

/// Prints one line for one file.
pub(super) fn print_written_file_line(paint: TextStyle, verb: &str, path: &str, about: &str) {
    let line = StyledLine::line_from_styled_text(paint, &format!("{verb:<8}"))
        .with_plain_suffix(" ")
        .append_styled_line(StyledLine::from(path).padded_to_min_width(30))
        .with_plain_suffix(" ")
        .with_painted_suffix(TextStyle::Dim, about);
    ui::print_output_wrapped(line, 9);
}

fn print_diff(path: &str, now: Option<&str>, after: &str) {
    // A new file is shown as git shows one.
    let old = if now.is_some() { path } else { "/dev/null" };
    let difference = TextDiff::from_lines(now.unwrap_or_default(), after);
    let text = difference
        .unified_diff()
        .context_radius(3)
        .header(old, path)
        .to_string();
    for line in text.lines() {
        let paint = match line.chars().next() {
            Some('+') => TextStyle::Good,
            Some('-') => TextStyle::Bad,
            Some('@') => TextStyle::Dim,
            _ => {
                ui::print_line_to_stdout(line);
                continue;
            }
        };
        ui::print_line_to_stdout(StyledLine::line_from_styled_text(paint, line));
    }
}
