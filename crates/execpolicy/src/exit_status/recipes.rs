//! Recipes of makefiles and justfiles: each line is a script of its own, and a line that
//! begins with `-` may fail.

use checkrein_core::exit_status::{CommandKind, HidingForm, StatusHider};

use super::called::joined;
use super::tool_calls::RecipeCall;
use super::{Position, Reader};

/// Recipes of one file, as far as they matter here.
#[derive(Debug, Default)]
struct RecipeFile {
    /// Name, prerequisites and lines of each.
    recipes: Vec<Recipe>,
    /// Values of plain variables.
    variables: Vec<(String, String)>,
    /// The whole recipe is one script: `.ONESHELL`.
    one_shell: bool,
    /// Failures of every recipe are passed over: `.IGNORE:`, `MAKEFLAGS += -i`.
    ignores: Option<String>,
}

#[derive(Debug, Default)]
struct Recipe {
    names: Vec<String>,
    needs: Vec<String>,
    lines: Vec<String>,
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
            RecipeLanguage::Make => read_makefile(&source),
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
            let mut known = false;
            for recipe in file
                .recipes
                .iter()
                .filter(|recipe| recipe.names.contains(&target))
            {
                known = true;
                targets.extend(recipe.needs.iter().cloned());
                let within = Position {
                    folder: folder.clone(),
                    place: Some(format!("{place}, {target}")),
                    ..position.within(false)
                };
                let name = format!("{place}, {target}");
                self.called(name, |reader| reader.recipe(&file, recipe, &within));
            }
            // A target without a rule fails, or is a file.
            if !known && call.targets.contains(&target) && language == RecipeLanguage::Make {
                self.note(text, program, CommandKind::Tests(None), position);
            }
            seen.push(target);
        }
    }

    fn recipe(&mut self, file: &RecipeFile, recipe: &Recipe, position: &Position) {
        let lines = recipe.lines.iter().map(|line| file.expanded(line));
        let is_script = recipe
            .lines
            .first()
            .is_some_and(|line| line.starts_with("#!"));
        if file.one_shell || is_script {
            let text = lines.collect::<Vec<_>>().join("\n");
            let marks = text.trim_start_matches(['@', '+']);
            return self.script(marks, position);
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
            self.script(command, &within.within(false));
        }
    }
}

impl RecipeFile {
    /// A line with its plain variables filled in.
    fn expanded(&self, line: &str) -> String {
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

/// Lines with their continuations.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => {
                last.push('\n');
                last.push_str(line.strip_prefix('\t').unwrap_or(line));
            }
            None => lines.push(line.to_owned()),
        }
        goes_on = line.ends_with('\\');
    }
    lines
}

fn read_makefile(text: &str) -> RecipeFile {
    let mut file = RecipeFile::default();
    let mut open = false;
    for line in logical_lines(text) {
        if let Some(command) = line.strip_prefix('\t') {
            if let Some(recipe) = file.recipes.last_mut().filter(|_| open) {
                recipe.lines.push(command.to_owned());
            }
            continue;
        }
        let line = line.replace("\\\n", " ");
        let code = line.split('#').next().unwrap_or("").trim_end();
        if code.trim().is_empty() {
            continue;
        }
        if let Some((name, value)) = assignment(code) {
            if name == "MAKEFLAGS"
                && value
                    .split_whitespace()
                    .any(|word| matches!(word, "-i" | "i" | "--ignore-errors"))
            {
                file.ignores = Some("MAKEFLAGS".to_owned());
            }
            file.variables.push((name, value));
            continue;
        }
        let Some((names, rest)) = code.split_once(':') else {
            continue;
        };
        let rest = rest.trim_start_matches(':');
        let (needs, inline) = rest
            .split_once(';')
            .map_or((rest, None), |(needs, line)| (needs, Some(line)));
        let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
        match names.first().map(String::as_str) {
            Some(".ONESHELL") => file.one_shell = true,
            Some(".IGNORE") if needs.trim().is_empty() => file.ignores = Some(".IGNORE".to_owned()),
            _ => {}
        }
        open = true;
        file.recipes.push(Recipe {
            names,
            needs: needs
                .split_whitespace()
                .filter(|word| *word != "|")
                .map(str::to_owned)
                .collect(),
            lines: inline
                .map(|line| line.trim().to_owned())
                .into_iter()
                .collect(),
        });
    }
    file
}

/// `NAME = value` in any of make's spellings.
fn assignment(code: &str) -> Option<(String, String)> {
    let (name, value) = code.split_once('=')?;
    let name = name.trim().trim_end_matches([':', '?', '+', '!']).trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    plain.then(|| (name.to_owned(), value.trim().to_owned()))
}

fn read_justfile(text: &str) -> RecipeFile {
    let mut file = RecipeFile::default();
    for line in logical_lines(text) {
        if line.starts_with([' ', '\t']) {
            if let Some(recipe) = file.recipes.last_mut() {
                recipe.lines.push(line.trim_start().to_owned());
            }
            continue;
        }
        if line.trim().is_empty() || line.starts_with(['#', '[']) {
            continue;
        }
        if let Some((name, value)) = line.split_once(":=") {
            let value = value.trim().trim_matches(['"', '\'']);
            file.variables.push((
                name.trim().trim_start_matches("export ").to_owned(),
                value.to_owned(),
            ));
            continue;
        }
        let Some((head, needs)) = line.split_once(':') else {
            continue;
        };
        let name = head
            .trim_start_matches('@')
            .split_whitespace()
            .next()
            .unwrap_or("");
        let needs = needs.split_whitespace().filter(|word| *word != "&&");
        file.recipes.push(Recipe {
            names: vec![name.to_owned()],
            needs: needs
                .map(|word| word.trim_matches(['(', ')']).to_owned())
                .collect(),
            lines: Vec::new(),
        });
    }
    file
}
