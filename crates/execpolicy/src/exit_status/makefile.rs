//! Makefiles: their rules, and what in them lets failures pass.

use super::called::{is_shell, joined};
use super::recipes::{Recipe, RecipeFile};
use crate::rules::basename;

/// Files inside one another.
const MAX_INCLUDES: usize = 20;

/// Gives the text of a file by its path; `Err` if it is there and cannot be read.
pub(super) type Includes<'a> = &'a dyn Fn(&str) -> Result<Option<String>, ()>;

/// Reads a makefile in `folder`, with what it includes.
pub(super) fn read_makefile(text: &str, includes: Includes<'_>) -> RecipeFile {
    let mut file = RecipeFile::default();
    let mut included = 0;
    add(text, includes, &mut file, &mut included);
    file.settle();
    file
}

fn add(text: &str, includes: Includes<'_>, file: &mut RecipeFile, included: &mut usize) {
    let mut open = false;
    let mut defined: Option<(String, Vec<String>)> = None;
    for line in logical_lines(text) {
        if let Some((name, mut lines)) = defined.take() {
            match line.trim() == "endef" {
                true => file.variables.push((name, lines.join("\n"))),
                false => {
                    lines.push(line);
                    defined = Some((name, lines));
                }
            }
            continue;
        }
        if let Some(command) = line.strip_prefix('\t') {
            if let Some(recipe) = file.recipes.last_mut().filter(|_| open) {
                recipe.lines.push(command.to_owned());
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
                include(code, rest, includes, file, included);
                continue;
            }
            _ => {}
        }
        if let Some((name, value)) = assignment(code) {
            assign(file, name, value);
            continue;
        }
        let Some((names, rest)) = code.split_once(':') else {
            continue;
        };
        let rest = rest.trim_start_matches(':');
        // `test: SHELL = /bin/true`
        if let Some((name, value)) = assignment(rest) {
            assign(file, name, value);
            continue;
        }
        let (needs, inline) = rest
            .split_once(';')
            .map_or((rest, None), |(needs, line)| (needs, Some(line)));
        let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
        let needs: Vec<String> = needs
            .split_whitespace()
            .filter(|word| *word != "|")
            .map(str::to_owned)
            .collect();
        match names.first().map(String::as_str) {
            Some(".ONESHELL") => file.one_shell = true,
            Some(".IGNORE") if needs.is_empty() => file.ignores = Some(".IGNORE".to_owned()),
            Some(".IGNORE") => file.ignored.extend(needs.iter().cloned()),
            _ => {}
        }
        open = true;
        file.recipes.push(Recipe {
            names,
            needs,
            lines: inline
                .map(|line| line.trim().to_owned())
                .into_iter()
                .collect(),
        });
    }
}

fn include(
    code: &str,
    names: &str,
    includes: Includes<'_>,
    file: &mut RecipeFile,
    included: &mut usize,
) {
    file.settle();
    for name in file.expanded(names).split_whitespace() {
        // What compilers write of the files that a file includes.
        if name.trim_end_matches(')').ends_with(".d") {
            continue;
        }
        *included += 1;
        let text = match joined("", name) {
            Some(name) if *included <= MAX_INCLUDES && !name.contains(['$', '*', '?', '[']) => {
                includes(&name)
            }
            _ => Err(()),
        };
        match text {
            Ok(Some(text)) => add(&text, includes, file, included),
            // Without a `-` make fails, or makes it first.
            Ok(None) => {}
            Err(()) => file.ignores = Some(code.to_owned()),
        }
    }
}

fn assign(file: &mut RecipeFile, name: String, value: String) {
    match name.as_str() {
        "MAKEFLAGS" | "GNUMAKEFLAGS" if flags_pass_over(&value).is_some() => {
            file.ignores = Some(format!("{name} = {value}"));
        }
        "SHELL" => file.shell = Some(value.clone()),
        ".SHELLFLAGS" => file.shell_flags = Some(value.clone()),
        _ => {}
    }
    file.variables.push((name, value));
}

/// The flag with which make passes failures over, or runs nothing. The first word of
/// `MAKEFLAGS` may go without its `-`.
pub(super) fn flags_pass_over(flags: &str) -> Option<&'static str> {
    flags
        .split_whitespace()
        .enumerate()
        .find_map(|(at, word)| match word.strip_prefix('-') {
            Some(_) => flag_passes_over(word),
            None if at == 0 && !word.contains('=') => flag_passes_over(&format!("-{word}")),
            None => None,
        })
}

/// The same of one option.
pub(super) fn flag_passes_over(option: &str) -> Option<&'static str> {
    match option {
        "--ignore-errors" => return Some("--ignore-errors"),
        "--dry-run" | "--just-print" | "--recon" => return Some("make -n"),
        "--touch" => return Some("make -t"),
        "--question" => return Some("make -q"),
        option if option.starts_with("--") => return None,
        _ => {}
    }
    for letter in option.strip_prefix('-')?.chars() {
        match letter {
            'i' => return Some("make -i"),
            'n' => return Some("make -n"),
            't' => return Some("make -t"),
            'q' => return Some("make -q"),
            // What follows is a value.
            'C' | 'E' | 'I' | 'O' | 'W' | 'f' | 'j' | 'l' | 'o' => return None,
            _ => {}
        }
    }
    None
}

/// Whether a program heeds what it is given to run, as far as its name says so.
pub(super) fn heeds_scripts(shell: &str) -> bool {
    let words = shell.split_whitespace();
    let mut names = words.map(|word| basename(word).trim_end_matches(')'));
    let name = names.find(|name| *name != "env" && !name.starts_with('-'));
    name.is_some_and(|name| {
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        let plain = plain.strip_suffix(".exe").unwrap_or(plain);
        is_shell(plain) || matches!(plain, "python" | "fish" | "pwsh" | "powershell" | "node")
    }) || shell.starts_with('$') && shell.trim_end_matches(')').ends_with("sh")
}

/// Lines with their continuations.
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

/// `NAME = value` in any of make's spellings.
fn assignment(code: &str) -> Option<(String, String)> {
    let (name, value) = code.split_once('=')?;
    let name = name.trim().trim_end_matches([':', '?', '+', '!']).trim();
    let name = ["override ", "export ", "private "]
        .iter()
        .fold(name, |name, word| {
            name.strip_prefix(word).unwrap_or(name).trim()
        });
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    plain.then(|| (name.to_owned(), value.trim().to_owned()))
}
