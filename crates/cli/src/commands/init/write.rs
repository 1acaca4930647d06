//! The one place in `init` that writes: it notes first what was there, or, in a dry run, shows
//! the difference and writes nothing.

use std::path::Path;

use similar::TextDiff;

use super::Site;
use crate::settings::file;
use crate::settings::record::{Installed, What, Written, digest};
use crate::ui;
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::style::Paint;

/// The folder for reports of checks.
const REPORTS: &str = ".checkrein";

/// See the module.
pub(super) struct Pen<'a> {
    pub(super) site: &'a Site,
    pub(super) installed: &'a mut Installed,
    pub(super) dry_run: bool,
}

impl<'a> Pen<'a> {
    pub(super) fn new(site: &'a Site, installed: &'a mut Installed, dry_run: bool) -> Self {
        Self {
            site,
            installed,
            dry_run,
        }
    }

    /// Writes `after` in place of `now`. `bare` is the text without anything of ours, which is
    /// what `--undo` goes back to.
    #[expect(
        clippy::too_many_arguments,
        reason = "one row of the record, said once"
    )]
    pub(super) fn write(
        &mut self,
        path: &Path,
        now: Option<(&str, Option<&str>)>,
        after: String,
        inserted: Vec<String>,
        what: What,
        agent: Option<&str>,
        about: &str,
    ) -> Result<(), CommandError> {
        let shown = self.site.shown(path);
        if now.is_some_and(|(now, _)| now == after) {
            self.kept(path, "nothing to change");
            return Ok(());
        }
        if self.dry_run {
            show(&shown, now.map(|(now, _)| now), &after);
            return Ok(());
        }
        let failed =
            |error: std::io::Error| CommandError::failed(format!("{}: {error}", path.display()));
        let known = self.installed.of(path).cloned();
        let bare = now.and_then(|(_, bare)| bare);
        let before = match bare {
            Some(bare) => Some(self.installed.keep(bare).map_err(failed)?),
            None => None,
        };
        let mut written = Written {
            path: path.to_owned(),
            what,
            scope: self.site.scope,
            agent: agent.map(str::to_owned),
            repo: Some(self.site.root.clone()),
            before,
            after: digest(&after),
            inserted,
            folders: known.map(|known| known.folders).unwrap_or_default(),
        };
        // Noted before it happens: what was noted and never happened is found to be so.
        self.installed.note(written.clone()).map_err(failed)?;
        let made = file::write(path, &after).map_err(failed)?;
        if !made.is_empty() {
            written.folders = made;
            self.installed.note(written).map_err(failed)?;
        }
        let verb = if now.is_some() { "changed" } else { "wrote" };
        line(Paint::Good, verb, &shown, about);
        Ok(())
    }

    /// Notes the folder for reports, if it is checks of ours that make it; says so.
    pub(super) fn reports(&mut self) -> Result<bool, CommandError> {
        let path = self.site.root.join(REPORTS);
        if path.exists() {
            return Ok(false);
        }
        let written = Written {
            path,
            what: What::Reports,
            scope: self.site.scope,
            agent: None,
            repo: Some(self.site.root.clone()),
            before: None,
            after: String::new(),
            inserted: Vec::new(),
            folders: Vec::new(),
        };
        self.installed.note(written)?;
        Ok(true)
    }

    /// Takes the folder for reports back, if it was this run that made it.
    pub(super) fn no_reports(&mut self, made: bool) -> Result<(), CommandError> {
        let path = self.site.root.join(REPORTS);
        if !made {
            return Ok(());
        }
        if path.is_dir() {
            std::fs::remove_dir_all(&path)?;
        }
        Ok(self.installed.forget(&path)?)
    }

    /// Says that a file stays as it is, and why.
    pub(super) fn kept(&self, path: &Path, why: &str) {
        line(Paint::Dim, "kept", &self.site.shown(path), why);
    }
}

/// One file, one line.
pub(super) fn line(paint: Paint, verb: &str, path: &str, about: &str) {
    let line = Line::painted(paint, &format!("{verb:<8}"))
        .with(" ")
        .then(Line::from(path).at_least(30))
        .with(" ")
        .with_painted(Paint::Dim, about);
    ui::answer_wrapped(line, 9);
}

fn show(path: &str, now: Option<&str>, after: &str) {
    let old = if now.is_some() { path } else { "/dev/null" };
    let difference = TextDiff::from_lines(now.unwrap_or_default(), after);
    let text = difference
        .unified_diff()
        .context_radius(3)
        .header(old, path)
        .to_string();
    for line in text.lines() {
        let paint = match line.chars().next() {
            Some('+') => Paint::Good,
            Some('-') => Paint::Bad,
            Some('@') => Paint::Dim,
            _ => {
                ui::answer(line);
                continue;
            }
        };
        ui::answer(Line::painted(paint, line));
    }
}
