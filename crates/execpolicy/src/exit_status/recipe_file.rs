//! A file of recipes: what its variables come to, which recipes make a target, and whether they run.

use super::called_scripts::is_shell;
use super::make_variables::replace_make_variables;
use super::makefile::{shell_flags_run_scripts, shell_runs_scripts};
use crate::rule_set::basename;

/// Recipes of one file, as far as they matter here.
#[derive(Debug, Default)]
pub(super) struct RecipeFile {
    pub(super) recipes: Vec<MakeOrJustRecipe>,
    /// A makefile, and no justfile.
    pub(super) is_make: bool,
    /// Variables with their values: several where only the run knows which one it has.
    variables: Vec<(String, Vec<String>)>,
    /// The ways of each conditional, and whether one of them is taken in any case.
    pub(super) conditionals: Vec<(usize, bool)>,
    /// Targets that are no files.
    pub(super) phony: Vec<String>,
    /// The whole recipe is one script: `.ONESHELL`.
    pub(super) one_shell: bool,
    /// What lets failures of every recipe pass: `.IGNORE:`, `MAKEFLAGS += -i`, a file that
    /// cannot be read.
    pub(super) ignores_failures: Option<String>,
    /// Recipes whose failures are passed over: `.IGNORE: a`.
    pub(super) ignored_targets: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct MakeOrJustRecipe {
    pub(super) names: Vec<String>,
    /// What must be made before, and makes it old.
    pub(super) needs: Vec<String>,
    /// What must only be made before.
    pub(super) after: Vec<String>,
    /// It runs whatever there is: `a::`.
    pub(super) always: bool,
    /// How many conditionals stand around it.
    pub(super) depth: usize,
    /// Its lines, each with the outermost conditional inside the recipe.
    pub(super) lines: Vec<(String, Option<MakeConditionalBranch>)>,
}

/// One way of a conditional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MakeConditionalBranch {
    pub(super) conditional: usize,
    pub(super) branch: usize,
}

/// Whether make runs the recipe of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MakeTargetRemakeDecision {
    Always,
    /// If something that it needs is newer.
    IfOld,
    /// It is there, and nothing makes it old.
    Never,
}

impl RecipeFile {
    /// Begins a conditional; its first way.
    pub(super) fn begin_conditional(&mut self) -> MakeConditionalBranch {
        self.conditionals.push((1, false));
        MakeConditionalBranch {
            conditional: self.conditionals.len() - 1,
            branch: 0,
        }
    }

    /// `else`; `is_last`: without a condition of its own.
    pub(super) fn begin_next_makefile_branch(&mut self, conditional: usize, is_last: bool) {
        if let Some((ways, full)) = self.conditionals.get_mut(conditional) {
            *ways += 1;
            *full |= is_last;
        }
    }

    /// Gives a variable a value by one of make's operators; `perhaps`: only the run knows whether.
    pub(super) fn set_make_variable(
        &mut self,
        name: String,
        operator: &str,
        value: String,
        perhaps: bool,
    ) {
        let value = match operator {
            "=" | "?=" | "+=" => value,
            _ => self.expand_make_variables(&value),
        };
        let Some((_, values)) = self.variables.iter_mut().find(|(known, _)| *known == name) else {
            return self.variables.push((name, vec![value]));
        };
        match operator {
            "?=" if !perhaps => {}
            "+=" => {
                let more = values.iter().map(|before| format!("{before} {value}"));
                match perhaps {
                    true => values.extend(more.collect::<Vec<_>>()),
                    false => *values = more.collect(),
                }
            }
            _ if perhaps => values.push(value),
            _ => *values = vec![value],
        }
        values.truncate(MAX_VALUES);
    }

    /// What runs the lines.
    pub(super) fn recipe_shell(&self) -> String {
        let shell = self.expand_make_variables("$(SHELL)");
        match shell.starts_with('$') {
            true => "sh".to_owned(),
            false => shell,
        }
    }

    /// Decides what depends on the last value of a variable.
    pub(super) fn note_make_shell_ignoring_failure(&mut self) {
        let heeds = |name: &str, heeds: &dyn Fn(&str) -> bool| {
            let (_, values) = self.variables.iter().find(|(known, _)| known == name)?;
            let bad = values
                .iter()
                .map(|value| self.expand_make_variables(value))
                .find(|value| !heeds(value))?;
            Some(format!("{name} = {bad}"))
        };
        let shell = heeds("SHELL", &shell_runs_scripts);
        let by_shell = is_shell(basename(
            self.recipe_shell().split_whitespace().last().unwrap_or(""),
        ));
        let flags = heeds(".SHELLFLAGS", &|flags| {
            !by_shell || shell_flags_run_scripts(flags)
        });
        if let Some(text) = shell.or(flags) {
            self.ignores_failures = Some(text);
        }
    }

    /// The recipes that make this target: its own, or those of a pattern.
    pub(super) fn recipes_for_target(&self, target: &str) -> Vec<&MakeOrJustRecipe> {
        let own = |recipe: &&MakeOrJustRecipe| recipe.names.iter().any(|name| name == target);
        let mut found: Vec<&MakeOrJustRecipe> = self.recipes.iter().filter(own).collect();
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

    /// Whether make runs the recipe of a target. Files that are there may be older than others, and so may what
    /// nobody can read.
    pub(super) fn predict_make_target_rebuild(
        &self,
        target: &str,
        is_there: &dyn Fn(&str) -> bool,
        depth: usize,
    ) -> MakeTargetRemakeDecision {
        let recipes = self.recipes_for_target(target);
        let is_phony = |name: &str| self.phony.iter().any(|known| known == name);
        if is_phony(target) || !is_there(target) || recipes.iter().any(|recipe| recipe.always) {
            return MakeTargetRemakeDecision::Always;
        }
        let needs: Vec<&String> = recipes.iter().flat_map(|recipe| &recipe.needs).collect();
        let is_made = |need: &&&String| {
            !need.contains(['$', '%', '*', '?'])
                && depth < MAX_NEEDS
                && self.predict_make_target_rebuild(need, is_there, depth + 1)
                    == MakeTargetRemakeDecision::Always
        };
        match (needs.is_empty(), needs.iter().any(|need| is_made(&need))) {
            (_, true) => MakeTargetRemakeDecision::Always,
            (true, _) => MakeTargetRemakeDecision::Never,
            _ => MakeTargetRemakeDecision::IfOld,
        }
    }

    /// A text with its variables filled in, in each way that they may have.
    pub(super) fn expand_recipe_variables(&self, text: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for way in 0..MAX_VALUES {
            let one = self.expand_make_vars_nth_value(text, way);
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }

    /// A text with its variables filled in.
    pub(super) fn expand_make_variables(&self, text: &str) -> String {
        self.expand_make_vars_nth_value(text, 0)
    }

    /// The same where those that may have several values have the one of this number.
    fn expand_make_vars_nth_value(&self, text: &str, way: usize) -> String {
        let mut text = text.to_owned();
        // Variables may stand in variables.
        for _ in 0..4 {
            let before = text.clone();
            for (name, values) in &self.variables {
                let Some(value) = values.get(way.min(values.len().saturating_sub(1))) else {
                    continue;
                };
                for form in [
                    format!("$({name})"),
                    format!("${{{name}}}"),
                    format!("{{{{{name}}}}}"),
                    format!("{{{{ {name} }}}}"),
                ] {
                    if text.len() < 10_000 && text.contains(&form) {
                        text = text.replace(&form, value);
                    }
                }
            }
            text = expand_make_if_function_branch(&text, way);
            if text == before {
                break;
            }
        }
        match self.is_make {
            true => replace_make_variables(&text),
            false => replace_justfile_interpolations(&text),
        }
    }
}

/// Values of one variable that are told apart.
const MAX_VALUES: usize = 4;
/// Targets that need one another, one behind the other.
const MAX_NEEDS: usize = 8;

/// `$(if CONDITION,THEN,ELSE)` as one of its ways.
fn expand_make_if_function_branch(text: &str, way: usize) -> String {
    let Some((before, rest)) = text.split_once("$(if ") else {
        return text.to_owned();
    };
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    let mut chars = rest.chars();
    for c in chars.by_ref() {
        match c {
            '(' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && parts.len() < 3 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let chosen = parts.get(1 + way % 2).map_or("", String::as_str);
    format!("{before}{chosen}{}", chars.as_str())
}

/// `{{ justfile_directory() }}` and the like as some word.
fn replace_justfile_interpolations(text: &str) -> String {
    let mut all = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((_, behind)) = after.split_once("}}") else {
            break;
        };
        all.push_str(before);
        all.push_str("$_");
        rest = behind;
    }
    all.push_str(rest);
    all
}
