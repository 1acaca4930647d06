//! Parses makefiles: their rules, and everything in them that hides failures.

use super::called_scripts::{is_shell, join_path_within_root};
use super::recipe_file::{MakeConditionalBranchIndex, MakeOrJustRecipe, RecipeFile};
use crate::rule_set::basename;

/// Included files that are read.
const MAX_INCLUDES: usize = 20;

/// Returns the text of a file by its path; `Err` if it exists and cannot be read.
pub(super) type MakefileIncludeLoader<'a> = &'a dyn Fn(&str) -> Result<Option<String>, ()>;

/// Parses a makefile with the files that it includes.
pub(super) fn parse_makefile(text: &str, includes: MakefileIncludeLoader<'_>) -> RecipeFile {
    let mut file = RecipeFile::default();
    file.is_make = true;
    let mut included = 0;
    parse_makefile_text(text, includes, &mut file, &mut included);
    file.note_make_shell_variables_ignoring_failure();
    file
}

fn parse_makefile_text(
    text: &str,
    includes: MakefileIncludeLoader<'_>,
    file: &mut RecipeFile,
    included: &mut usize,
) {
    let mut open = false;
    let mut defined: Option<(String, Vec<String>)> = None;
    // The conditionals that are open, each with the branch that is being read.
    let mut under: Vec<MakeConditionalBranchIndex> = Vec::new();
    for line in logical_lines(text) {
        // Inside `define` every line belongs to the value.
        if let Some((name, mut lines)) = defined.take() {
            match line.trim() == "endef" {
                true => assign_make_variable(file, name, "=", lines.join("\n"), !under.is_empty()),
                false => {
                    lines.push(line);
                    defined = Some((name, lines));
                }
            }
            continue;
        }
        if let Some(command) = line.strip_prefix('\t') {
            if let Some(recipe) = file.recipes.last_mut().filter(|_| open) {
                // Conditionals around the whole rule belong to the rule.
                let branch = under.get(recipe.depth).copied();
                recipe.lines.push((command.to_owned(), branch));
            }
            continue;
        }
        let line = line.replace("\\\n", " ");
        let code = line.split('#').next().unwrap_or("").trim();
        let (first, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        match first {
            "" => continue,
            "define" => {
                let name = rest.trim_end_matches(['=', ':', '?', '+', ' ']).trim();
                defined = Some((name.to_owned(), Vec::new()));
                continue;
            }
            "include" | "-include" | "sinclude" => {
                load_included_makefiles(code, rest, includes, file, included);
                continue;
            }
            first if first.starts_with("ifeq") || first.starts_with("ifneq") => {
                under.push(file.begin_conditional());
                continue;
            }
            "ifdef" | "ifndef" => {
                under.push(file.begin_conditional());
                continue;
            }
            "else" => {
                if let Some(branch) = under.last_mut() {
                    branch.branch += 1;
                    file.begin_next_makefile_branch(branch.conditional, rest.is_empty());
                }
                continue;
            }
            "endif" => {
                under.pop();
                continue;
            }
            _ => {}
        }
        // `eval` can define any rule or variable.
        if code.contains("$(eval") || code.contains("${eval") {
            file.ignores_failures = Some(code.to_owned());
        }
        if let Some((name, operator, value)) = parse_make_assignment(code) {
            assign_make_variable(file, name, operator, value, !under.is_empty());
            continue;
        }
        let Some((names, rest)) = code.split_once(':') else {
            continue;
        };
        // A double-colon rule without prerequisites always runs.
        let twice = rest.starts_with(':');
        let rest = rest.trim_start_matches(':');
        // `test: SHELL = /bin/true`
        if let Some((name, operator, value)) = parse_make_assignment(rest) {
            assign_make_variable(file, name, operator, value, true);
            continue;
        }
        let (needs, inline) = rest
            .split_once(';')
            .map_or((rest, None), |(needs, line)| (needs, Some(line)));
        let names: Vec<String> = whitespace_words(&file.expand_make_variables(names));
        // Prerequisites after the `|` do not make the target out of date.
        let (needs, after) = needs.split_once('|').unwrap_or((needs, ""));
        let (needs, after) = (
            whitespace_words(&file.expand_make_variables(needs)),
            whitespace_words(&file.expand_make_variables(after)),
        );
        match names.first().map(String::as_str) {
            Some(".ONESHELL") => file.one_shell = true,
            Some(".IGNORE") if needs.is_empty() => {
                file.ignores_failures = Some(".IGNORE".to_owned())
            }
            Some(".IGNORE") => file.ignored_targets.extend(needs.iter().cloned()),
            Some(".PHONY") => file.phony.extend(needs.iter().cloned()),
            _ => {}
        }
        open = true;
        file.recipes.push(MakeOrJustRecipe {
            names,
            always: twice && needs.is_empty(),
            needs,
            after,
            depth: under.len(),
            lines: inline
                .map(|line| (line.trim().to_owned(), None))
                .into_iter()
                .collect(),
        });
    }
}

fn whitespace_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn load_included_makefiles(
    code: &str,
    names: &str,
    includes: MakefileIncludeLoader<'_>,
    file: &mut RecipeFile,
    included: &mut usize,
) {
    file.note_make_shell_variables_ignoring_failure();
    for name in file.expand_make_variables(names).split_whitespace() {
        // Dependency files of compilers are skipped, or no project in C could be checked.
        if name.trim_end_matches(')').ends_with(".d") {
            continue;
        }
        *included += 1;
        // A file that cannot be followed may hide anything.
        let text = match join_path_within_root("", name) {
            Some(name) if *included <= MAX_INCLUDES && !name.contains(['$', '*', '?', '[']) => {
                includes(&name)
            }
            _ => Err(()),
        };
        match text {
            Ok(Some(text)) => parse_makefile_text(&text, includes, file, included),
            // Without a leading `-`, make fails or makes the file first.
            Ok(None) => {}
            Err(()) => file.ignores_failures = Some(code.to_owned()),
        }
    }
}

/// Assigns a variable. `perhaps`: under a condition, or for one target only.
fn assign_make_variable(
    file: &mut RecipeFile,
    name: String,
    operator: &str,
    value: String,
    perhaps: bool,
) {
    match name.as_str() {
        "MAKEFLAGS" | "GNUMAKEFLAGS" if make_flag_ignoring_failures(&value).is_some() => {
            file.ignores_failures = Some(format!("{name} = {value}"));
        }
        // These are judged by their last value, when the file has been read.
        "SHELL" | ".SHELLFLAGS" if operator != "!=" => {}
        // `.RECIPEPREFIX` changes which lines are recipes. With `!=` the value is a command's
        // output.
        "SHELL" | ".SHELLFLAGS" | ".RECIPEPREFIX" => {
            file.ignores_failures = Some(format!("{name} = {value}"))
        }
        "BASH_ENV" if !value.is_empty() => {
            file.ignores_failures = Some(format!("{name} = {value}"))
        }
        _ => {}
    }
    file.set_make_variable(name, operator, value, perhaps);
}

/// Returns the flag with which make ignores failures, or runs nothing. The first word of
/// `MAKEFLAGS` may stand without its `-`.
pub(super) fn make_flag_ignoring_failures(flags: &str) -> Option<&'static str> {
    flags
        .split_whitespace()
        .enumerate()
        .find_map(|(at, word)| match word.strip_prefix('-') {
            Some(_) => failure_hiding_make_option(word),
            None if at == 0 && !word.contains('=') => {
                failure_hiding_make_option(&format!("-{word}"))
            }
            None => None,
        })
}

/// Does the same for one option.
pub(super) fn failure_hiding_make_option(option: &str) -> Option<&'static str> {
    match option {
        "--ignore-errors" => return Some("--ignore-errors"),
        "--dry-run" | "--just-print" | "--recon" => return Some("make -n"),
        "--touch" => return Some("make -t"),
        "--question" => return Some("make -q"),
        option if option.starts_with("--eval") => return Some("make --eval"),
        option if option.starts_with("--old-file") || option.starts_with("--assume-old") => {
            return Some("make -o");
        }
        option if option.starts_with("--") => return None,
        _ => {}
    }
    for letter in option.strip_prefix('-')?.chars() {
        match letter {
            'i' => return Some("make -i"),
            'n' => return Some("make -n"),
            't' => return Some("make -t"),
            'q' => return Some("make -q"),
            'v' => return Some("make -v"),
            'E' => return Some("make --eval"),
            'o' => return Some("make -o"),
            // The rest of the word is the value of the option.
            'C' | 'I' | 'O' | 'W' | 'f' | 'j' | 'l' => return None,
            _ => {}
        }
    }
    None
}

/// Returns whether a program, judged by its name, runs the script that it is given.
pub(super) fn make_shell_runs_scripts(shell: &str) -> bool {
    let mut words = shell
        .split_whitespace()
        .skip_while(|word| basename(word) == "env" || word.starts_with('-'));
    let Some(program) = words.next() else {
        return false;
    };
    let flags = words.collect::<Vec<_>>().join(" ");
    // A variable or function is judged by its text: `$(shell which bash)`.
    if program.starts_with('$') {
        return shell.trim_end_matches(')').ends_with("sh");
    }
    // A program of the project itself may do anything.
    let own = program.contains(['/', '\\']) && !program.starts_with('/') && !program.contains(':');
    let name = basename(program).trim_end_matches(')');
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let plain = plain.strip_suffix(".exe").unwrap_or(plain);
    let known =
        is_shell(plain) || matches!(plain, "python" | "fish" | "pwsh" | "powershell" | "node");
    known && !own && (!is_shell(plain) || shell_flags_run_command_string(&flags))
}

/// Returns whether a shell with these flags runs the text that follows: `-ec`,
/// `-eu -o pipefail -c`.
pub(super) fn shell_flags_run_command_string(flags: &str) -> bool {
    let mut words = flags.split_whitespace();
    while let Some(word) = words.next() {
        if matches!(word, "--login" | "--noprofile" | "--norc" | "--posix") {
            continue;
        }
        let Some(letters) = word.strip_prefix('-') else {
            return false;
        };
        let known = |c: char| "abcefhiklmoprtuvxBCEHPT".contains(c);
        if !letters.chars().all(known) {
            return false;
        }
        // With `-o noexec` a shell reads the script and runs nothing.
        if letters.ends_with('o') && words.next().is_none_or(|option| option == "noexec") {
            return false;
        }
    }
    true
}

/// Joins lines with their continuations.
pub(super) fn logical_lines(text: &str) -> Vec<String> {
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

/// Parses `NAME = value` in any of make's spellings: name, operator and value.
fn parse_make_assignment(code: &str) -> Option<(String, &str, String)> {
    let at = code.find('=')?;
    let (name, value) = (code.get(..at)?, code.get(at + 1..)?);
    let plain = name.trim_end_matches([':', '?', '+', '!']);
    let operator = code.get(plain.len()..=at)?;
    let name = ["override ", "export ", "private "]
        .iter()
        .fold(plain.trim(), |name, word| {
            name.strip_prefix(word).unwrap_or(name).trim()
        });
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    plain.then(|| (name.to_owned(), operator, value.trim().to_owned()))
}
