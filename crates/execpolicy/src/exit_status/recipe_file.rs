//! A file of recipes: the values of its variables, the recipes that make a target, and whether
//! they run.

use super::called_scripts::is_shell;
use super::make_variables::recipe_text_for_shell;
use super::makefile::{make_shell_runs_scripts, shell_flags_run_command_string};
use crate::rule_set::basename;

/// Recipes of one file, as far as they matter here.
#[derive(Debug, Default)]
pub(super) struct RecipeFile {
    pub(super) recipes: Vec<MakeOrJustRecipe>,
    /// Whether it is a makefile and not a justfile.
    pub(super) is_make: bool,
    /// Variables with their values; several if only the run knows which one holds.
    variables: Vec<(String, Vec<String>)>,
    /// How many branches each conditional has, and whether one of them is taken in any case.
    pub(super) conditionals: Vec<(usize, bool)>,
    /// Targets that are no files.
    pub(super) phony: Vec<String>,
    /// Whether a whole recipe is one script: `.ONESHELL`.
    pub(super) one_shell: bool,
    /// What hides the failures of every recipe: `.IGNORE:`, `MAKEFLAGS += -i`, or a file that
    /// cannot be read.
    pub(super) ignores_failures: Option<String>,
    /// Targets whose failures are ignored: `.IGNORE: a`.
    pub(super) ignored_targets: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct MakeOrJustRecipe {
    pub(super) names: Vec<String>,
    /// Prerequisites that are made before; a newer one makes the target out of date.
    pub(super) needs: Vec<String>,
    /// Prerequisites that only have to be made before.
    pub(super) after: Vec<String>,
    /// Whether it runs in any case: `a::`.
    pub(super) always: bool,
    /// How many conditionals stand around it.
    pub(super) depth: usize,
    /// Its lines, each with the outermost conditional inside the recipe.
    pub(super) lines: Vec<(String, Option<MakeConditionalBranchIndex>)>,
}

/// One branch of a conditional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MakeConditionalBranchIndex {
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
    /// Begins a conditional and returns its first branch.
    pub(super) fn begin_conditional(&mut self) -> MakeConditionalBranchIndex {
        self.conditionals.push((1, false));
        MakeConditionalBranchIndex {
            conditional: self.conditionals.len() - 1,
            branch: 0,
        }
    }

    /// Begins the branch of an `else`. `is_last`: it has no condition of its own.
    pub(super) fn begin_next_makefile_branch(&mut self, conditional: usize, is_last: bool) {
        if let Some((ways, full)) = self.conditionals.get_mut(conditional) {
            *ways += 1;
            *full |= is_last;
        }
    }

    /// Assigns a variable by one of make's operators. `perhaps`: only the run knows whether this
    /// happens.
    pub(super) fn set_make_variable(
        &mut self,
        name: String,
        operator: &str,
        value: String,
        perhaps: bool,
    ) {
        // `:=` expands the value at once; the other operators leave it until it is used.
        let value = match operator {
            "=" | "?=" | "+=" => value,
            _ => self.expand_make_variables(&value),
        };
        let Some((_, values)) = self.variables.iter_mut().find(|(known, _)| *known == name) else {
            return self.variables.push((name, vec![value]));
        };
        match operator {
            // `?=` leaves a variable as it is if it has a value.
            "?=" if !perhaps => {}
            "+=" => {
                let more = values.iter().map(|before| format!("{before} {value}"));
                match perhaps {
                    true => values.extend(more.collect::<Vec<_>>()),
                    false => *values = more.collect(),
                }
            }
            // Both the earlier values and this one are possible.
            _ if perhaps => values.push(value),
            _ => *values = vec![value],
        }
        values.truncate(MAX_VALUES);
    }

    /// Returns the shell that runs the lines.
    pub(super) fn recipe_shell(&self) -> String {
        let shell = self.expand_make_variables("$(SHELL)");
        match shell.starts_with('$') {
            true => "sh".to_owned(),
            false => shell,
        }
    }

    /// Judges the shell and its flags by the last values of their variables.
    pub(super) fn note_make_shell_variables_ignoring_failure(&mut self) {
        let heeds = |name: &str, heeds: &dyn Fn(&str) -> bool| {
            let (_, values) = self.variables.iter().find(|(known, _)| known == name)?;
            let bad = values
                .iter()
                .map(|value| self.expand_make_variables(value))
                .find(|value| !heeds(value))?;
            Some(format!("{name} = {bad}"))
        };
        let shell = heeds("SHELL", &make_shell_runs_scripts);
        // The flags of a program that is no shell cannot be judged by those of a shell.
        let by_shell = is_shell(basename(
            self.recipe_shell().split_whitespace().last().unwrap_or(""),
        ));
        let flags = heeds(".SHELLFLAGS", &|flags| {
            !by_shell || shell_flags_run_command_string(flags)
        });
        if let Some(text) = shell.or(flags) {
            self.ignores_failures = Some(text);
        }
    }

    /// Returns the recipes that make this target: its own, or those of a pattern if its own have
    /// no lines.
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

    /// Predicts whether make runs the recipe of a target. A file that exists may be older than
    /// others, and so may one that cannot be read.
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
        // A prerequisite that is always made makes the target out of date.
        match (needs.is_empty(), needs.iter().any(|need| is_made(&need))) {
            (_, true) => MakeTargetRemakeDecision::Always,
            (true, _) => MakeTargetRemakeDecision::Never,
            _ => MakeTargetRemakeDecision::IfOld,
        }
    }

    /// Returns a text with its variables expanded, once for each set of values that they may have.
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

    /// Returns a text with its variables expanded to their first values.
    pub(super) fn expand_make_variables(&self, text: &str) -> String {
        self.expand_make_vars_nth_value(text, 0)
    }

    /// Does the same with the value of this number where a variable has several.
    fn expand_make_vars_nth_value(&self, text: &str, way: usize) -> String {
        let mut text = text.to_owned();
        // A value may hold variables itself.
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
                    // The bound stops a variable that contains itself from growing without end.
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
            true => recipe_text_for_shell(&text),
            false => mask_justfile_interpolations(&text),
        }
    }
}

/// Values of one variable that are told apart.
const MAX_VALUES: usize = 4;
/// Length of a chain of prerequisites that is followed.
const MAX_NEEDS: usize = 8;

/// Expands `$(if CONDITION,THEN,ELSE)` to one of its branches.
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
    // The condition is not evaluated: even numbers take THEN, odd ones ELSE.
    let chosen = parts.get(1 + way % 2).map_or("", String::as_str);
    format!("{before}{chosen}{}", chars.as_str())
}

/// Replaces `{{ justfile_directory() }}` and the like by a word that is not known.
fn mask_justfile_interpolations(text: &str) -> String {
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
