//! Tracks files that a request writes and then runs: their code did not exist yet when the request
//! was judged.

use std::collections::BTreeSet;

use crate::effects;
use crate::effects::evaluation::CommandEffectsEvaluation;
use crate::effects::glob::{self, GlobMatchCertainty};
use crate::effects::paths::{LexicalPath, UNKNOWN};

/// Files, programs and copies that are kept.
const MOST: usize = 256;

/// Rounds in which copies of copies are followed.
const ROUNDS: usize = 4;

/// What was written and what was run so far.
#[derive(Debug, Default)]
pub(super) struct WriteThenRunTracker {
    files: Vec<LexicalPath>,
    /// Those of them that come from the network.
    fetched: Vec<LexicalPath>,
    folders: Vec<LexicalPath>,
    started: Vec<LexicalPath>,
    programs: BTreeSet<String>,
    /// Whether a program of this request reads code from its input.
    pub(super) reads_stdin_code: bool,
    /// Commands that make files out of other files. They are followed last, since redirects are
    /// known only when all commands are.
    pending_copies: Vec<CommandEffectsEvaluation>,
}

impl WriteThenRunTracker {
    /// Records the files that a redirect or a patch writes. `fetched`: their content comes from
    /// the network.
    pub(super) fn track_files_written_by_redirect_or_patch(
        &mut self,
        judged: &CommandEffectsEvaluation,
        fetched: bool,
    ) {
        add_new_paths_up_to_limit(&mut self.files, &judged.written_files);
        if fetched {
            add_new_paths_up_to_limit(&mut self.fetched, &judged.written_files);
        }
        add_new_paths_up_to_limit(&mut self.started, &judged.started_files);
    }

    /// Records what a command of this program does. `fed`: its input is made by another command.
    /// `fetched`: what it writes comes from the network.
    pub(super) fn track_files_made_by_command(
        &mut self,
        program: &str,
        judged: &mut CommandEffectsEvaluation,
        (fed, fetched): (bool, bool),
    ) {
        if fed || effects::written_content_is_given_not_built(program) {
            add_new_paths_up_to_limit(&mut self.files, &judged.written_files);
            if fed && program != "patch" {
                add_new_paths_up_to_limit(&mut self.folders, &judged.filled_folders);
            }
        }
        if fetched {
            add_new_paths_up_to_limit(&mut self.fetched, &judged.written_files);
        }
        add_new_paths_up_to_limit(
            &mut self.started,
            &std::mem::take(&mut judged.started_files),
        );
        if self.programs.len() < MOST {
            self.programs.insert(program.to_owned());
        }
        // A command that reads and writes may copy a created file. Whether it does is known only
        // when all commands are.
        let makes = !judged.written_files.is_empty() || !judged.filled_folders.is_empty();
        if makes && !judged.read.is_empty() && self.pending_copies.len() < MOST {
            self.pending_copies.push(CommandEffectsEvaluation {
                written_files: std::mem::take(&mut judged.written_files),
                filled_folders: std::mem::take(&mut judged.filled_folders),
                read: std::mem::take(&mut judged.read),
                copied: std::mem::take(&mut judged.copied),
                ..CommandEffectsEvaluation::default()
            });
        }
    }

    /// Follows files that are made out of created ones.
    pub(super) fn follow_copies_of_created_files(&mut self) {
        let later = std::mem::take(&mut self.pending_copies);
        // The commands may stand in any order, so a chain of copies takes one round for each link.
        for judged in later.iter().cycle().take(later.len() * ROUNDS) {
            if judged
                .read
                .iter()
                .any(|spot| self.may_be_made_by_script(spot))
            {
                add_new_paths_up_to_limit(&mut self.files, &judged.written_files);
                add_new_paths_up_to_limit(&mut self.folders, &judged.filled_folders);
            }
            if judged
                .read
                .iter()
                .any(|spot| self.path_may_be_downloaded_file(spot))
            {
                add_new_paths_up_to_limit(&mut self.fetched, &judged.written_files);
            }
            // Files that were made in a copied folder lie in the copy as well.
            for (from, to) in &judged.copied {
                let within = |file: &LexicalPath| file.path_with_alias_replaced(from, to);
                let moved: Vec<LexicalPath> = self.files.iter().filter_map(within).collect();
                add_new_paths_up_to_limit(&mut self.files, &moved);
                let moved: Vec<LexicalPath> = self.fetched.iter().filter_map(within).collect();
                add_new_paths_up_to_limit(&mut self.fetched, &moved);
            }
        }
    }

    /// Returns whether a path can be one of these files or lie in one of these folders.
    fn may_be_made_by_script(&self, spot: &LexicalPath) -> bool {
        let below = |folder: &LexicalPath| spot.path_with_alias_replaced(folder, folder).is_some();
        self.files.iter().any(|file| may_be_same_path(file, spot)) || self.folders.iter().any(below)
    }

    /// Returns whether a path can be a file that comes from the network.
    fn path_may_be_downloaded_file(&self, spot: &LexicalPath) -> bool {
        self.fetched.iter().any(|file| may_be_same_path(file, spot))
    }

    /// Returns a file that comes from the network and is run.
    pub(super) fn file_downloaded_then_run(&self) -> Option<String> {
        let spot = self
            .started
            .iter()
            .find(|spot| self.path_may_be_downloaded_file(spot));
        spot.map(LexicalPath::absolute_path_text)
    }

    /// Returns a file that is written and run. `renamed`: the request changes where programs are
    /// searched for.
    pub(super) fn file_written_then_run(&self, renamed: bool) -> Option<String> {
        if let Some(spot) = self
            .started
            .iter()
            .find(|spot| self.may_be_made_by_script(spot))
        {
            return Some(spot.absolute_path_text());
        }
        let file = |name: &str| {
            let named = |file: &&LexicalPath| {
                file.file_name()
                    .is_some_and(|own| glob::globs_intersect(own, name))
            };
            self.files
                .iter()
                .find(named)
                .map(LexicalPath::absolute_path_text)
        };
        // A program may start another by its bare name: a compiler starts an assembler, a build a
        // shell.
        let bare = |file: &&LexicalPath| file.file_name().is_some_and(|name| !name.contains('.'));
        if renamed
            && self.programs.contains("chmod")
            && let Some(spot) = self.files.iter().find(bare)
        {
            return Some(spot.absolute_path_text());
        }
        self.programs.iter().find_map(|program| {
            // If the request changes `PATH`, a created file can stand in for any program of its
            // name.
            let own = renamed.then(|| file(program)).flatten();
            own.or_else(|| effects::files_autoloaded_by_program(program).find_map(file))
        })
    }
}

fn add_new_paths_up_to_limit(kept: &mut Vec<LexicalPath>, more: &[LexicalPath]) {
    for spot in more {
        if kept.len() < MOST && !kept.contains(spot) {
            kept.push(spot.clone());
        }
    }
}

/// Returns whether two paths can be the same. If a part is unknown, only their last parts count.
fn may_be_same_path(file: &LexicalPath, run: &LexicalPath) -> bool {
    let (Some(own), Some(name)) = (file.file_name(), run.file_name()) else {
        return false;
    };
    if file.path_has_unknown_part() || run.path_has_unknown_part() {
        return !own.contains(UNKNOWN)
            && !name.contains(UNKNOWN)
            && glob::globs_intersect(own, name);
    }
    let (file, run) = (file.absolute_path_text(), run.absolute_path_text());
    let file: Vec<&str> = file.split('/').collect();
    let run: Vec<&str> = run.split('/').collect();
    glob::path_pattern_match_certainty(&file, &run, false) != GlobMatchCertainty::No
}
