//! Recipes of makefiles and justfiles: each line is a script of its own, and a line that
//! begins with `-` may fail.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};

use super::called::{joined, with_options};
use super::justfile::read_justfile;
use super::makefile::{logical_lines, read_makefile};
use super::recipe_file::{Recipe, RecipeFile, Remade};
use super::recognise::names_tests;
use super::tool_calls::RecipeCall;
use super::{Position, ProjectEntry, Reader};

/// Which language a file of recipes is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecipeLanguage {
    Make,
    Just,
}

impl RecipeLanguage {
    fn files(self) -> &'static [&'static str] {
        match self {
            Self::Make => &["GNUmakefile", "makefile", "Makefile"],
            Self::Just => &["justfile", "Justfile", ".justfile"],
        }
    }
}

impl Reader<'_> {
    /// `make test`: the recipes that it runs, or the command itself where they cannot be read.
    pub(super) fn recipes(
        &mut self,
        text: &str,
        program: &str,
        language: RecipeLanguage,
        call: &RecipeCall,
        position: &Position,
    ) {
        let own = call.passed_over.map(|option| {
            position.hidden(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: option.to_owned(),
            })
        });
        let position = own.as_ref().unwrap_or(position);
        let folder = match &call.folder {
            None => Some(position.folder.clone()),
            Some(folder) => joined(&position.folder, folder),
        };
        let found = folder.and_then(|folder| {
            let named = call.file.iter().map(String::as_str);
            let known = language.files().iter().copied();
            let mut names: Vec<&str> = named.collect();
            if names.is_empty() {
                names.extend(known);
            }
            let (name, text) = names
                .into_iter()
                .find_map(|name| Some((name.to_owned(), self.text_of(&folder, name)?)))?;
            Some((folder, name, text))
        });
        let Some((folder, name, source)) = found else {
            return self.note(text, program, CheckScriptCommandKind::Tests(None), position);
        };
        let mut file = match language {
            RecipeLanguage::Make => self.makefile(&folder, &source),
            RecipeLanguage::Just => read_justfile(&source),
        };
        for (name, value) in &call.variables {
            file.set(name.clone(), "=", value.clone(), false);
        }
        let mut targets = call.targets.clone();
        if targets.is_empty() {
            let goal = file.expanded("$(.DEFAULT_GOAL)");
            let first = file.recipes.iter().flat_map(|recipe| &recipe.names);
            match goal.starts_with('$') {
                true => {
                    targets.extend(first.filter(|name| !name.starts_with('.')).take(1).cloned())
                }
                false => targets.push(goal),
            }
        }
        let judges = targets.iter().any(|target| names_check(target));
        let ignored = file.ignores.clone().map(|text| {
            position.hidden(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text,
            })
        });
        let position = ignored.as_ref().unwrap_or(position);
        let place = joined(&folder, &name).unwrap_or(name);
        let mut has_lines = false;
        let mut seen: Vec<String> = Vec::new();
        while let Some(target) = targets.pop() {
            if seen.contains(&target) {
                continue;
            }
            let recipes = file.recipes_of(&target);
            let shell = file.shell();
            let mut within = Position {
                folder: folder.clone(),
                bash: self.knows_bash(shell.split_whitespace().last().unwrap_or("sh")),
                place: Some(format!("{place}, {target}")),
                ..position.within(false)
            };
            if file.ignored.contains(&target) {
                let text = format!(".IGNORE: {target}");
                within = within.hidden(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text,
                });
            }
            for recipe in &recipes {
                targets.extend(recipe.needs.iter().chain(&recipe.after).cloned());
            }
            let before = self.reading.commands.len();
            let full = recipes.iter().filter(|recipe| !recipe.lines.is_empty());
            let full: Vec<&&Recipe> = full.collect();
            let perhaps = full.iter().any(|recipe| recipe.depth > 0);
            let name = format!("{place}, {target}");
            has_lines |= !full.is_empty();
            self.called(name, |reader| {
                if !perhaps {
                    return full
                        .iter()
                        .for_each(|recipe| reader.recipe(&file, recipe, &within));
                }
                // One that stands alone need not be there.
                reader.either(full.len().max(2), IN_CONDITIONAL, |reader, way| {
                    if let Some(recipe) = full.get(way) {
                        reader.recipe(&file, recipe, &within);
                    }
                });
            });
            if language == RecipeLanguage::Make {
                self.doubt_remade(&file, &folder, &target, before);
                // Then make fails, or makes it in its own way.
                if recipes.is_empty() && call.targets.contains(&target) {
                    let hider = ExitStatusMask::mask_from_unreadable_context(format!(
                        "no rule for `{target}` could be read"
                    ));
                    let here = position.hidden(hider);
                    self.note(text, program, CheckScriptCommandKind::Tests(None), &here);
                }
            }
            seen.push(target);
        }
        if judges && !has_lines {
            let hider = ExitStatusMask::mask_from_unreadable_context(
                "it has no recipe, so that there is nothing to do",
            );
            self.note(
                text,
                program,
                CheckScriptCommandKind::Tests(None),
                &position.hidden(hider),
            );
        }
    }

    /// Marks what make need not run, because what it would make is there.
    fn doubt_remade(&mut self, file: &RecipeFile, folder: &str, target: &str, from: usize) {
        let is_there = |target: &str| {
            let path = joined(folder, target);
            path.is_none_or(|path| (self.project.entry)(&path) != Some(ProjectEntry::Nothing))
        };
        let why = match file.remade(target, &is_there, 0) {
            Remade::Always => return,
            Remade::Never => {
                format!("`{target}` is there and not .PHONY, so that make has nothing to do")
            }
            Remade::IfOld => {
                // What is built is there already. Of tests, nobody knows.
                let commands = self.reading.commands.get_mut(from..).unwrap_or_default();
                for command in commands {
                    command.may_not_run |= matches!(command.kind, CheckScriptCommandKind::Tests(_));
                }
                return;
            }
        };
        self.doubt_from(from, &why);
    }

    /// A makefile with the files that it includes.
    fn makefile(&self, folder: &str, text: &str) -> RecipeFile {
        read_makefile(text, &|name| {
            if let Some(text) = self.text_of(folder, name) {
                return Ok(Some(text));
            }
            let path = joined(folder, name).ok_or(())?;
            match (self.project.entry)(&path) {
                Some(ProjectEntry::Nothing) => Ok(None),
                _ => Err(()),
            }
        })
    }

    fn recipe(&mut self, file: &RecipeFile, recipe: &Recipe, position: &Position) {
        let is_script = recipe
            .lines
            .first()
            .is_some_and(|(line, _)| line.starts_with("#!"));
        if file.one_shell || is_script {
            let texts: Vec<&str> = recipe.lines.iter().map(|(line, _)| line.as_str()).collect();
            let perhaps = recipe.lines.iter().any(|(_, branch)| branch.is_some());
            let from = self.reading.commands.len();
            self.recipe_text(file, &texts.join("\n"), position, true);
            if perhaps {
                self.doubt_from(from, IN_CONDITIONAL);
            }
            return;
        }
        let mut lines = recipe.lines.iter().peekable();
        while let Some((line, branch)) = lines.next() {
            let Some(branch) = branch else {
                self.recipe_text(file, line, position, false);
                continue;
            };
            let (ways, is_full) = file
                .conditionals
                .get(branch.conditional)
                .copied()
                .unwrap_or((1, false));
            let mut texts: Vec<Vec<&str>> = vec![Vec::new(); if is_full { ways } else { ways + 1 }];
            let mut own = Some((line, *branch));
            while let Some((line, one)) = own.take() {
                if let Some(way) = texts.get_mut(one.way) {
                    way.push(line);
                }
                let next = lines.next_if(|(_, next)| {
                    next.is_some_and(|next| next.conditional == branch.conditional)
                });
                own = next.and_then(|(line, next)| Some((line, (*next)?)));
            }
            self.either(texts.len(), IN_CONDITIONAL, |reader, way| {
                for line in texts.get(way).into_iter().flatten() {
                    reader.recipe_text(file, line, position, false);
                }
            });
        }
    }

    /// A line of a recipe, or all of it, with whatever its variables may be.
    fn recipe_text(&mut self, file: &RecipeFile, text: &str, position: &Position, is_whole: bool) {
        let all = file.expansions(text);
        let read = |reader: &mut Self, way: usize| {
            let expanded = all.get(way).map_or("", String::as_str);
            reader.expanded_text(file, expanded, position, is_whole);
        };
        match all.len() {
            1 => read(self, 0),
            ways => self.either(ways, IN_CONDITIONAL, read),
        }
    }

    fn expanded_text(
        &mut self,
        file: &RecipeFile,
        text: &str,
        position: &Position,
        is_whole: bool,
    ) {
        let flags = file.expanded("$(.SHELLFLAGS)");
        let flags: Vec<&str> = match flags.starts_with("$(") {
            true => Vec::new(),
            false => flags.split_whitespace().collect(),
        };
        if is_whole {
            let marks = text.trim_start_matches(['@', '+']);
            return self.script(&with_options(&flags, marks), position);
        }
        // What `define` names are several lines.
        for line in logical_lines(text) {
            let line = line.trim_start();
            let marks: String = line
                .chars()
                .take_while(|c| matches!(c, '-' | '@' | '+'))
                .collect();
            let command = line.get(marks.len()..).unwrap_or("");
            let within = match marks.contains('-') {
                true => position.hidden(ExitStatusMask {
                    form: ExitStatusMaskKind::Tool,
                    text: "-".to_owned(),
                }),
                false => position.clone(),
            };
            self.script(&with_options(&flags, command), &within.within(false));
        }
    }
}

/// Why it is not known what runs.
const IN_CONDITIONAL: &str =
    "it stands under a condition of the makefile, and another way of it runs nothing that judges";

/// Whether a target is one of checks by its name.
fn names_check(target: &str) -> bool {
    names_tests(target)
        || target
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|part| {
                matches!(
                    part,
                    "check" | "checks" | "ci" | "lint" | "verify" | "typecheck"
                )
            })
}
