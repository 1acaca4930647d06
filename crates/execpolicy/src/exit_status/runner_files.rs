//! Reads files in which other tools keep commands of the project: `tox.ini`, and the aliases of
//! cargo.

use checkrein_core::exit_status::{ExitStatusMask, ExitStatusMaskKind};

use super::{CommandStatusContext, ExitStatusAnalyzer};

/// Commands of cargo that no alias can replace.
const CARGO_COMMANDS: &[&str] = &[
    "add", "bench", "build", "check", "clean", "clippy", "doc", "fetch", "fix", "fmt", "init",
    "install", "metadata", "new", "nextest", "publish", "remove", "run", "search", "test", "tree",
    "update", "vendor",
];

impl ExitStatusAnalyzer<'_> {
    /// Returns the words that an alias of cargo stands for.
    pub(super) fn expand_cargo_alias(
        &self,
        words: &[&str],
        position: &CommandStatusContext,
    ) -> Option<Vec<String>> {
        let at = words
            .iter()
            .skip(1)
            .position(|word| !word.starts_with(['+', '-']))?
            + 1;
        let name = words
            .get(at)
            .filter(|name| !CARGO_COMMANDS.contains(name))?;
        // The config of the nearest folder counts, up to the root.
        let mut folder = position.folder.as_str();
        let value = loop {
            let files = [".cargo/config.toml", ".cargo/config"];
            let found = files.iter().find_map(|file| {
                let text = self.project_file_text(folder, file)?;
                cargo_alias_words(&text, name)
            });
            if found.is_some() || folder.is_empty() {
                break found?;
            }
            folder = folder.rsplit_once('/').map_or("", |(before, _)| before);
        };
        let (before, after) = words.split_at(at);
        let owned = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let mut all = owned(before);
        all.extend(value);
        all.extend(owned(after.get(1..).unwrap_or(&[])));
        Some(all)
    }

    /// Analyses the commands of `tox.ini`; one that begins with `-` may fail.
    pub(super) fn trace_tox_commands(
        &mut self,
        arguments: &[&str],
        position: &CommandStatusContext,
    ) {
        let Some(text) = self.project_file_text(&position.folder, "tox.ini") else {
            return;
        };
        let mut chosen: Vec<&str> = Vec::new();
        // `-e py312,lint` and `-epy312` choose environments.
        for (at, word) in arguments.iter().enumerate() {
            let list = match *word {
                "-e" => arguments.get(at + 1).copied(),
                word => word.strip_prefix("-e").filter(|list| !list.is_empty()),
            };
            chosen.extend(
                list.unwrap_or("")
                    .split(',')
                    .filter(|name| !name.is_empty()),
            );
        }
        for section in parse_ini_sections(&text) {
            let Some(name) = section.name.strip_prefix("testenv") else {
                continue;
            };
            let name = name.trim_start_matches(':');
            // The plain `testenv` section holds for all environments.
            if !chosen.is_empty() && !name.is_empty() && !chosen.contains(&name) {
                continue;
            }
            let ignored = section
                .lines_of_ini_value("ignore_outcome")
                .iter()
                .any(|value| value.eq_ignore_ascii_case("true"));
            for line in section.lines_of_ini_value("commands") {
                let line = without_tox_factor_prefix(&line);
                let (mark, line) = match line.strip_prefix(['-', '!']) {
                    Some(rest) => (line.get(..1), rest.trim_start()),
                    None => (None, line),
                };
                let mark = mark.or(ignored.then_some("ignore_outcome = true"));
                let mut within = CommandStatusContext {
                    place: Some(format!("tox.ini, {}", section.name)),
                    ..position.child_process_exit_status_context(false)
                };
                if let Some(mark) = mark {
                    within = within.with_status_hidden_by(ExitStatusMask {
                        form: ExitStatusMaskKind::Tool,
                        text: mark.to_owned(),
                    });
                }
                self.analyze_script_exit_statuses(
                    &without_tox_substitutions(line),
                    &within.child_process_exit_status_context(false),
                );
            }
        }
    }
}

/// A section of an INI file.
struct IniSection<'t> {
    name: &'t str,
    lines: Vec<&'t str>,
}

impl IniSection<'_> {
    /// Returns the lines of a value, continued lines joined.
    fn lines_of_ini_value(&self, key: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let (mut inside, mut goes_on) = (false, false);
        for line in &self.lines {
            // An indented line belongs to the value above it.
            let value = match line.starts_with([' ', '\t']) {
                true => line.trim(),
                false => {
                    let pair = line.split_once('=');
                    inside = pair.is_some_and(|(name, _)| name.trim() == key);
                    pair.map_or("", |(_, value)| value.trim())
                }
            };
            if !inside || value.is_empty() || value.starts_with('#') {
                continue;
            }
            let part = value.trim_end_matches('\\').trim_end();
            match found.last_mut().filter(|_| goes_on) {
                Some(last) => {
                    last.push(' ');
                    last.push_str(part);
                }
                None => found.push(part.to_owned()),
            }
            goes_on = value.ends_with('\\');
        }
        found
    }
}

fn parse_ini_sections(text: &str) -> Vec<IniSection<'_>> {
    let mut found: Vec<IniSection<'_>> = Vec::new();
    for line in text.lines() {
        let name = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        match (name, found.last_mut()) {
            (Some((name, _)), _) => found.push(IniSection {
                name: name.trim(),
                lines: Vec::new(),
            }),
            (None, Some(section)) => section.lines.push(line),
            (None, None) => {}
        }
    }
    found
}

/// Removes a condition on the environment: `py312: pytest`.
fn without_tox_factor_prefix(line: &str) -> &str {
    match line.split_once(": ") {
        Some((factor, rest)) if !factor.contains([' ', '"', '\'']) => rest.trim_start(),
        _ => line,
    }
}

/// Removes `{posargs:tests}` and the like; the words that they expand to do not matter here.
fn without_tox_substitutions(line: &str) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for c in line.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text
}

/// Returns the words of an alias in a config of cargo: `t2 = "test --all"`,
/// `t2 = ["test", "--all"]`.
fn cargo_alias_words(text: &str, name: &str) -> Option<Vec<String>> {
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix('[') {
            section = rest.trim_end_matches(']').trim();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let key = key.trim();
        let key = match section {
            "alias" => key,
            // Before the first section an alias is written `alias.NAME`.
            "" => key.strip_prefix("alias.").unwrap_or(""),
            _ => "",
        };
        if key.trim_matches(['"', '\'']) != name {
            continue;
        }
        let value = value.trim();
        return Some(match value.strip_prefix('[') {
            Some(list) => {
                let words = list.trim_end_matches(']').split(',');
                let words = words.map(|word| word.trim().trim_matches(['"', '\'']).to_owned());
                words.filter(|word| !word.is_empty()).collect()
            }
            None => {
                let words = value.trim_matches(['"', '\'']).split_whitespace();
                words.map(str::to_owned).collect()
            }
        });
    }
    None
}
