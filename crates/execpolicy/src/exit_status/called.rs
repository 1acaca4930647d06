//! What a check calls and the project says: shell scripts and scripts of a `package.json`.

use checkrein_core::exit_status::{CommandKind, HidingForm, StatusHider};
use serde_json::Value;

use super::tool_calls::PackageScripts;
use super::{Position, Reader, shortened};
use crate::rules::basename;

/// `path` as it is seen from `folder`, relative to the root; `None` if it leads outside.
pub(super) fn joined(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~', '$', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The options with which the first line of a script has it read, if a shell reads it.
pub(super) fn shebang_options(text: &str) -> Option<String> {
    let Some(line) = text.strip_prefix("#!") else {
        // Without one, the shell that calls it reads it.
        return Some(String::new());
    };
    let line = line.lines().next().unwrap_or("");
    let mut words = line.split_whitespace().skip_while(|word| {
        matches!(basename(word), "env") || word.starts_with('-') && line.contains("env")
    });
    let shell = basename(words.next().unwrap_or(""));
    is_shell(shell).then(|| words.collect::<Vec<_>>().join(" "))
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "mksh" | "rbash"
    )
}

/// What options given to a shell switch on before it reads anything.
pub(super) fn with_options(options: &[&str], text: &str) -> String {
    let mut prelude = String::new();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            continue;
        };
        if letters.contains('e') {
            prelude.push_str("set -e; ");
        }
        for _ in letters.matches('o') {
            match words.next() {
                Some(&"pipefail") => prelude.push_str("set -o pipefail; "),
                Some(&"errexit") => prelude.push_str("set -e; "),
                _ => {}
            }
        }
    }
    match prelude.is_empty() {
        true => text.to_owned(),
        false => format!("{prelude}\n{text}"),
    }
}

impl Reader<'_> {
    /// A shell script of the project. Whether it could be read as one.
    pub(super) fn script_file(
        &mut self,
        path: &str,
        options: &[&str],
        position: &Position,
    ) -> bool {
        let Some(text) = self.text_of(&position.folder, path) else {
            return false;
        };
        let Some(shebang) = shebang_options(&text) else {
            return false;
        };
        let own: Vec<&str> = shebang.split_whitespace().collect();
        let text = with_options(options, &with_options(&own, &text));
        let name = joined(&position.folder, path).unwrap_or_else(|| path.to_owned());
        let within = Position {
            place: Some(name.clone()),
            ..position.within(false)
        };
        self.called(name, |reader| reader.script(&text, &within));
        true
    }

    /// Scripts of a `package.json`, or the command itself where they cannot be read.
    pub(super) fn package_scripts(
        &mut self,
        text: &str,
        program: &str,
        call: &PackageScripts,
        position: &Position,
    ) {
        let folder = match &call.folder {
            None => Some(position.folder.clone()),
            Some(folder) => joined(&position.folder, folder),
        };
        let document = folder.as_deref().and_then(|folder| {
            let text = self.text_of(folder, "package.json")?;
            serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')).ok()
        });
        let position = match call.passed_over {
            Some(option) => &position.hidden(StatusHider {
                form: HidingForm::Tool,
                text: option.to_owned(),
            }),
            None => position,
        };
        for name in &call.names {
            let script = |name: &str| {
                let scripts = document.as_ref()?.get("scripts")?;
                scripts.get(name)?.as_str().map(str::to_owned)
            };
            let Some(body) = script(name) else {
                // A program of a package, or a script that is not there: then it fails, unless
                // it is told not to.
                let position = match call.optional {
                    true => &position.hidden(StatusHider {
                        form: HidingForm::Tool,
                        text: "--if-present".to_owned(),
                    }),
                    false => position,
                };
                self.note(text, program, CommandKind::Tests(None), position);
                continue;
            };
            let folder = folder.clone().unwrap_or_default();
            let mut bodies = vec![(name.clone(), body)];
            if call.hooks {
                let before = format!("pre{name}");
                let after = format!("post{name}");
                if let Some(body) = script(&before) {
                    bodies.insert(0, (before, body));
                }
                if let Some(body) = script(&after) {
                    bodies.push((after, body));
                }
            }
            for (name, body) in bodies {
                let file = joined(&folder, "package.json").unwrap_or_default();
                let place = format!("{file}, script {}", shortened(&name));
                let within = Position {
                    folder: folder.clone(),
                    place: Some(place.clone()),
                    ..position.within(false)
                };
                self.called(place, |reader| reader.script(&body, &within));
            }
        }
    }
}
