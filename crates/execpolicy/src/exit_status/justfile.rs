//! Parses justfiles: their recipes and settings.

use super::makefile::logical_lines;
use super::recipe_file::{MakeOrJustRecipe, RecipeFile};

pub(super) fn parse_justfile(text: &str) -> RecipeFile {
    let mut file = RecipeFile::default();
    for line in logical_lines(text) {
        // An indented line belongs to the recipe above it.
        if line.starts_with([' ', '\t']) {
            if let Some(recipe) = file.recipes.last_mut() {
                recipe.lines.push((line.trim_start().to_owned(), None));
            }
            continue;
        }
        // A line with `[` is an attribute of the recipe below it.
        if line.trim().is_empty() || line.starts_with(['#', '[']) {
            continue;
        }
        if let Some((name, value)) = line.split_once(":=") {
            let (name, value) = (name.trim(), value.trim());
            if name == "set shell" {
                apply_justfile_shell_setting(&mut file, value);
                continue;
            }
            let name = name.trim_start_matches("export ").to_owned();
            file.set_make_variable(name, "=", value.trim_matches(['"', '\'']).to_owned(), false);
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
        // Recipes after `&&` run behind this one; all of them run.
        let needs = needs.split_whitespace().filter(|word| *word != "&&");
        file.recipes.push(MakeOrJustRecipe {
            names: vec![name.to_owned()],
            needs: needs
                .map(|word| word.trim_matches(['(', ')']).to_owned())
                .collect(),
            ..MakeOrJustRecipe::default()
        });
    }
    file.note_make_shell_variables_ignoring_failure();
    file
}

/// Reads the list of `set shell`: `["bash", "-euo", "pipefail", "-c"]`.
fn apply_justfile_shell_setting(file: &mut RecipeFile, list: &str) {
    let words: Vec<&str> = list
        .trim_matches(['[', ']'])
        .split(',')
        .map(|word| word.trim().trim_matches(['"', '\'']))
        .collect();
    if let Some((shell, flags)) = words.split_first() {
        file.set_make_variable("SHELL".to_owned(), "=", (*shell).to_owned(), false);
        file.set_make_variable(".SHELLFLAGS".to_owned(), "=", flags.join(" "), false);
    }
}
