//! Analyses recipes of makefiles and justfiles: each line is a script of its own, and a line that
//! begins with `-` may fail.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};

use super::called_scripts::{join_path_within_root, prepend_shell_options};
use super::justfile::parse_justfile;
use super::makefile::{logical_lines, parse_makefile};
use super::recipe_file::{MakeOrJustRecipe, MakeTargetRemakeDecision, RecipeFile};
use super::recognise::is_test_task_name;
use super::runner_calls::RecipeRunnerInvocation;
use super::{CommandStatusContext, ExitStatusAnalyzer, FileFolderOrNothing};

/// The language of a file of recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecipeFileKind {
    Make,
    Just,
}

impl RecipeFileKind {
    fn makefile_or_justfile_names(self) -> &'static [&'static str] {
        match self {
            Self::Make => &["GNUmakefile", "makefile", "Makefile"],
            Self::Just => &["justfile", "Justfile", ".justfile"],
        }
    }
}

impl ExitStatusAnalyzer<'_> {
    /// Analyses the recipes that `make test` runs, or records the command itself if they cannot be
    /// read.
    pub(super) fn analyze_recipes_run_by_command(
        &mut self,
        text: &str,
        program: &str,
        language: RecipeFileKind,
        call: &RecipeRunnerInvocation,
        position: &CommandStatusContext,
    ) {
        let own = call.passed_over.map(|option| {
            position.with_status_hidden_by(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: option.to_owned(),
            })
        });
        let position = own.as_ref().unwrap_or(position);
        let folder = match &call.folder {
            None => Some(position.folder.clone()),
            Some(folder) => join_path_within_root(&position.folder, folder),
        };
        let found = folder.and_then(|folder| {
            let named = call.file.iter().map(String::as_str);
            let known = language.makefile_or_justfile_names().iter().copied();
            let mut names: Vec<&str> = named.collect();
            if names.is_empty() {
                names.extend(known);
            }
            let (name, text) = names
                .into_iter()
                .find_map(|name| Some((name.to_owned(), self.project_file_text(&folder, name)?)))?;
            Some((folder, name, text))
        });
        let Some((folder, name, source)) = found else {
            return self.record_check_script_command(
                text,
                program,
                CheckScriptCommandKind::Tests(None),
                position,
            );
        };
        let mut file = match language {
            RecipeFileKind::Make => self.parse_makefile_with_includes(&folder, &source),
            RecipeFileKind::Just => parse_justfile(&source),
        };
        // Variables of the command line override those of the file.
        for (name, value) in &call.variables {
            file.set_make_variable(name.clone(), "=", value.clone(), false);
        }
        let mut targets = call.targets.clone();
        // Without a target make takes `.DEFAULT_GOAL`, or the first target that begins with no
        // dot.
        if targets.is_empty() {
            let goal = file.expand_make_variables("$(.DEFAULT_GOAL)");
            let first = file.recipes.iter().flat_map(|recipe| &recipe.names);
            match goal.starts_with('$') {
                true => {
                    targets.extend(first.filter(|name| !name.starts_with('.')).take(1).cloned())
                }
                false => targets.push(goal),
            }
        }
        let judges = targets.iter().any(|target| is_check_target_name(target));
        let ignored = file.ignores_failures.clone().map(|text| {
            position.with_status_hidden_by(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text,
            })
        });
        let position = ignored.as_ref().unwrap_or(position);
        let place = join_path_within_root(&folder, &name).unwrap_or(name);
        let mut has_lines = false;
        let mut seen: Vec<String> = Vec::new();
        while let Some(target) = targets.pop() {
            if seen.contains(&target) {
                continue;
            }
            let recipes = file.recipes_for_target(&target);
            let shell = file.recipe_shell();
            let mut within = CommandStatusContext {
                folder: folder.clone(),
                bash: self.supports_bash_syntax(shell.split_whitespace().last().unwrap_or("sh")),
                place: Some(format!("{place}, {target}")),
                ..position.child_process_exit_status_context(false)
            };
            if file.ignored_targets.contains(&target) {
                let text = format!(".IGNORE: {target}");
                within = within.with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text,
                });
            }
            // Prerequisites run as well, so they become targets of their own.
            for recipe in &recipes {
                targets.extend(recipe.needs.iter().chain(&recipe.after).cloned());
            }
            let before = self.reading.commands.len();
            let full = recipes.iter().filter(|recipe| !recipe.lines.is_empty());
            let full: Vec<&&MakeOrJustRecipe> = full.collect();
            let perhaps = full.iter().any(|recipe| recipe.depth > 0);
            let name = format!("{place}, {target}");
            has_lines |= !full.is_empty();
            self.read_script_unless_recursive(name, |reader| {
                if !perhaps {
                    return full.iter().for_each(|recipe| {
                        reader.analyze_recipe_exit_statuses(&file, recipe, &within)
                    });
                }
                // A single rule under a condition need not exist, so an empty alternative is
                // added.
                reader.analyze_each_possible_branch(
                    full.len().max(2),
                    CONDITIONAL_REASON,
                    |reader, way| {
                        if let Some(recipe) = full.get(way) {
                            reader.analyze_recipe_exit_statuses(&file, recipe, &within);
                        }
                    },
                );
            });
            if language == RecipeFileKind::Make {
                self.mark_recipe_possibly_skipped(&file, &folder, &target, before);
                // Without a rule make fails, or uses a rule of its own.
                if recipes.is_empty() && call.targets.contains(&target) {
                    let hider = ExitStatusMask::unreadable_exit_status_mask(format!(
                        "no rule for `{target}` could be read"
                    ));
                    let here = position.with_status_hidden_by(hider);
                    self.record_check_script_command(
                        text,
                        program,
                        CheckScriptCommandKind::Tests(None),
                        &here,
                    );
                }
            }
            seen.push(target);
        }
        if judges && !has_lines {
            let hider = ExitStatusMask::unreadable_exit_status_mask(
                "it has no recipe, so that there is nothing to do",
            );
            self.record_check_script_command(
                text,
                program,
                CheckScriptCommandKind::Tests(None),
                &position.with_status_hidden_by(hider),
            );
        }
    }

    /// Marks the commands that make need not run because their target exists.
    fn mark_recipe_possibly_skipped(
        &mut self,
        file: &RecipeFile,
        folder: &str,
        target: &str,
        from: usize,
    ) {
        // A path outside of the root counts as existing: then make may have nothing to do.
        let is_there = |target: &str| {
            let path = join_path_within_root(folder, target);
            path.is_none_or(|path| {
                (self.project.entry)(&path) != Some(FileFolderOrNothing::Nothing)
            })
        };
        let why = match file.predict_make_target_rebuild(target, &is_there, 0) {
            MakeTargetRemakeDecision::Always => return,
            MakeTargetRemakeDecision::Never => {
                format!("`{target}` is there and not .PHONY, so that make has nothing to do")
            }
            MakeTargetRemakeDecision::IfOld => {
                // A build that is up to date has its result already. Of tests that says nothing.
                let commands = self.reading.commands.get_mut(from..).unwrap_or_default();
                for command in commands {
                    command.may_not_run |= matches!(command.kind, CheckScriptCommandKind::Tests(_));
                }
                return;
            }
        };
        self.mark_commands_doubtful_from(from, &why);
    }

    /// Parses a makefile with the files that it includes.
    fn parse_makefile_with_includes(&self, folder: &str, text: &str) -> RecipeFile {
        parse_makefile(text, &|name| {
            if let Some(text) = self.project_file_text(folder, name) {
                return Ok(Some(text));
            }
            let path = join_path_within_root(folder, name).ok_or(())?;
            // A file that exists and cannot be read may hide anything.
            match (self.project.entry)(&path) {
                Some(FileFolderOrNothing::Nothing) => Ok(None),
                _ => Err(()),
            }
        })
    }

    fn analyze_recipe_exit_statuses(
        &mut self,
        file: &RecipeFile,
        recipe: &MakeOrJustRecipe,
        position: &CommandStatusContext,
    ) {
        let is_script = recipe
            .lines
            .first()
            .is_some_and(|(line, _)| line.starts_with("#!"));
        // Under `.ONESHELL`, or with a `#!` in the first line, one process reads all lines.
        if file.one_shell || is_script {
            let texts: Vec<&str> = recipe.lines.iter().map(|(line, _)| line.as_str()).collect();
            let perhaps = recipe.lines.iter().any(|(_, branch)| branch.is_some());
            let from = self.reading.commands.len();
            self.analyze_recipe_exit_status(file, &texts.join("\n"), position, true);
            if perhaps {
                self.mark_commands_doubtful_from(from, CONDITIONAL_REASON);
            }
            return;
        }
        let mut lines = recipe.lines.iter().peekable();
        while let Some((line, branch)) = lines.next() {
            let Some(branch) = branch else {
                self.analyze_recipe_exit_status(file, line, position, false);
                continue;
            };
            let (ways, is_full) = file
                .conditionals
                .get(branch.conditional)
                .copied()
                .unwrap_or((1, false));
            // Unless one branch is always taken, there is one more way: no line runs.
            let mut texts: Vec<Vec<&str>> = vec![Vec::new(); if is_full { ways } else { ways + 1 }];
            let mut own = Some((line, *branch));
            while let Some((line, one)) = own.take() {
                if let Some(way) = texts.get_mut(one.branch) {
                    way.push(line);
                }
                let next = lines.next_if(|(_, next)| {
                    next.is_some_and(|next| next.conditional == branch.conditional)
                });
                own = next.and_then(|(line, next)| Some((line, (*next)?)));
            }
            self.analyze_each_possible_branch(texts.len(), CONDITIONAL_REASON, |reader, way| {
                for line in texts.get(way).into_iter().flatten() {
                    reader.analyze_recipe_exit_status(file, line, position, false);
                }
            });
        }
    }

    /// Analyses a line of a recipe, or all of it, once for each value that its variables may have.
    fn analyze_recipe_exit_status(
        &mut self,
        file: &RecipeFile,
        text: &str,
        position: &CommandStatusContext,
        is_whole: bool,
    ) {
        let all = file.expand_recipe_variables(text);
        let read = |reader: &mut Self, way: usize| {
            let expanded = all.get(way).map_or("", String::as_str);
            reader.analyze_expanded_recipe_text(file, expanded, position, is_whole);
        };
        match all.len() {
            1 => read(self, 0),
            ways => self.analyze_each_possible_branch(ways, CONDITIONAL_REASON, read),
        }
    }

    fn analyze_expanded_recipe_text(
        &mut self,
        file: &RecipeFile,
        text: &str,
        position: &CommandStatusContext,
        is_whole: bool,
    ) {
        let flags = file.expand_make_variables("$(.SHELLFLAGS)");
        let flags: Vec<&str> = match flags.starts_with("$(") {
            true => Vec::new(),
            false => flags.split_whitespace().collect(),
        };
        if is_whole {
            let marks = text.trim_start_matches(['@', '+']);
            return self
                .analyze_script_exit_statuses(&prepend_shell_options(&flags, marks), position);
        }
        // A variable from `define` can hold several lines.
        for line in logical_lines(text) {
            let line = line.trim_start();
            // `-` ignores failures, `@` does not print the line, `+` runs it even under `-n`.
            let marks: String = line
                .chars()
                .take_while(|c| matches!(c, '-' | '@' | '+'))
                .collect();
            let command = line.get(marks.len()..).unwrap_or("");
            let within = match marks.contains('-') {
                true => position.with_status_hidden_by(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text: "-".to_owned(),
                }),
                false => position.clone(),
            };
            self.analyze_script_exit_statuses(
                &prepend_shell_options(&flags, command),
                &within.child_process_exit_status_context(false),
            );
        }
    }
}

/// The reason given where a conditional decides what runs.
const CONDITIONAL_REASON: &str =
    "it stands under a condition of the makefile, and another way of it runs nothing that judges";

/// Returns whether the name of a target says that it checks something.
fn is_check_target_name(target: &str) -> bool {
    is_test_task_name(target)
        || target
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|part| {
                matches!(
                    part,
                    "check" | "checks" | "ci" | "lint" | "verify" | "typecheck"
                )
            })
}
