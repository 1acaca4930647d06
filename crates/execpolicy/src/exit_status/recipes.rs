//! Recipes of makefiles and justfiles: each line is a script of its own, and a line that
//! begins with `-` may fail.

use checkrein_core::exit_status::{CommandKind, HidingForm, StatusHider};

use super::called::{joined, with_options};
use super::justfile::read_justfile;
use super::makefile::{heeds_scripts, logical_lines, read_makefile};
use super::tool_calls::RecipeCall;
use super::{Position, ProjectEntry, Reader};

/// Recipes of one file, as far as they matter here.
#[derive(Debug, Default)]
pub(super) struct RecipeFile {
    pub(super) recipes: Vec<Recipe>,
    /// Values of plain variables.
    pub(super) variables: Vec<(String, String)>,
    /// The whole recipe is one script: `.ONESHELL`.
    pub(super) one_shell: bool,
    /// What lets failures of every recipe pass: `.IGNORE:`, `MAKEFLAGS += -i`, a file that
    /// cannot be read.
    pub(super) ignores: Option<String>,
    /// Recipes whose failures are passed over: `.IGNORE: a`.
    pub(super) ignored: Vec<String>,
    /// What runs the lines, and how it is called.
    pub(super) shell: Option<String>,
    pub(super) shell_flags: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Recipe {
    pub(super) names: Vec<String>,
    pub(super) needs: Vec<String>,
    pub(super) lines: Vec<String>,
}

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
            position.hidden(StatusHider {
                form: HidingForm::Tool,
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
            return self.note(text, program, CommandKind::Tests(None), position);
        };
        let file = match language {
            RecipeLanguage::Make => self.makefile(&folder, &source),
            RecipeLanguage::Just => read_justfile(&source),
        };
        let mut targets = call.targets.clone();
        if targets.is_empty() {
            let first = file.recipes.iter().flat_map(|recipe| &recipe.names);
            targets.extend(first.filter(|name| !name.starts_with('.')).take(1).cloned());
        }
        let ignored = file.ignores.clone().map(|text| {
            position.hidden(StatusHider {
                form: HidingForm::Tool,
                text,
            })
        });
        let position = ignored.as_ref().unwrap_or(position);
        let place = joined(&folder, &name).unwrap_or(name);
        let mut seen: Vec<String> = Vec::new();
        while let Some(target) = targets.pop() {
            if seen.contains(&target) {
                continue;
            }
            let recipes = file.recipes_of(&target);
            for recipe in &recipes {
                targets.extend(recipe.needs.iter().cloned());
                let shell = file.shell.as_deref().unwrap_or("sh");
                let mut within = Position {
                    folder: folder.clone(),
                    bash: self.knows_bash(shell.split_whitespace().last().unwrap_or(shell)),
                    place: Some(format!("{place}, {target}")),
                    ..position.within(false)
                };
                if file.ignored.contains(&target) {
                    let text = format!(".IGNORE: {target}");
                    within = within.hidden(StatusHider {
                        form: HidingForm::Tool,
                        text,
                    });
                }
                let name = format!("{place}, {target}");
                self.called(name, |reader| reader.recipe(&file, recipe, &within));
            }
            // A target without a rule fails, or is a file.
            if recipes.is_empty()
                && call.targets.contains(&target)
                && language == RecipeLanguage::Make
            {
                self.note(text, program, CommandKind::Tests(None), position);
            }
            seen.push(target);
        }
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
        let lines = recipe.lines.iter().flat_map(|line| file.lines_of(line));
        let flags = file.shell_flags.as_deref().unwrap_or("");
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let is_script = recipe
            .lines
            .first()
            .is_some_and(|line| line.starts_with("#!"));
        if file.one_shell || is_script {
            let text = lines.collect::<Vec<_>>().join("\n");
            let marks = text.trim_start_matches(['@', '+']);
            return self.script(&with_options(&flags, marks), position);
        }
        for line in lines {
            let line = line.trim_start();
            let marks: String = line
                .chars()
                .take_while(|c| matches!(c, '-' | '@' | '+'))
                .collect();
            let command = line.get(marks.len()..).unwrap_or("");
            let within = match marks.contains('-') {
                true => position.hidden(StatusHider {
                    form: HidingForm::Tool,
                    text: "-".to_owned(),
                }),
                false => position.clone(),
            };
            self.script(&with_options(&flags, command), &within.within(false));
        }
    }
}

impl RecipeFile {
    /// Decides what depends on the last value of a variable.
    pub(super) fn settle(&mut self) {
        let shell = self.shell.as_ref().map(|shell| self.expanded(shell));
        if let Some(shell) = shell.filter(|shell| !heeds_scripts(shell)) {
            self.ignores = Some(format!("SHELL = {shell}"));
        }
        let flags = self.shell_flags.as_deref().unwrap_or("");
        let reads_only =
            |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains('n');
        if flags.split_whitespace().any(reads_only) {
            self.ignores = Some(format!(".SHELLFLAGS = {flags}"));
        }
    }

    /// The recipes that make this target: its own, or those of a pattern.
    fn recipes_of(&self, target: &str) -> Vec<&Recipe> {
        let own = |recipe: &&Recipe| recipe.names.iter().any(|name| name == target);
        let mut found: Vec<&Recipe> = self.recipes.iter().filter(own).collect();
        if found.iter().all(|recipe| recipe.lines.is_empty()) {
            let fits = |name: &String| {
                name.split_once('%').is_some_and(|(before, after)| {
                    let rest = target.strip_prefix(before);
                    rest.and_then(|rest| rest.strip_suffix(after))
                        .is_some_and(|stem| !stem.is_empty())
                })
            };
            let patterns = self.recipes.iter();
            found.extend(patterns.filter(|recipe| recipe.names.iter().any(fits)));
        }
        found
    }

    /// The lines that a line comes to: what `define` names are several.
    fn lines_of(&self, line: &str) -> Vec<String> {
        logical_lines(&self.expanded(line))
    }

    /// A line with its plain variables filled in.
    pub(super) fn expanded(&self, line: &str) -> String {
        let mut text = line.to_owned();
        // Variables may stand in variables.
        for _ in 0..4 {
            let before = text.clone();
            for (name, value) in &self.variables {
                for form in [
                    format!("$({name})"),
                    format!("${{{name}}}"),
                    format!("{{{{{name}}}}}"),
                    format!("{{{{ {name} }}}}"),
                ] {
                    if text.len() < 10_000 {
                        text = text.replace(&form, value);
                    }
                }
            }
            if text == before {
                break;
            }
        }
        text.replace("$(MAKE)", "make")
            .replace("${MAKE}", "make")
            .replace("$$", "$")
    }
}
