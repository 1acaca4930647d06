//! Scripts of a `package.json`, of one package or of those of a workspace.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};
use serde_json::Value;

use super::called::joined;
use super::tool_calls::PackageScripts;
use super::{Position, Reader, shortened};

/// Packages of a workspace that are read.
const MAX_PACKAGES: usize = 50;

impl Reader<'_> {
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
        let position = match call.passed_over {
            Some(option) => &position.hidden(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: option.to_owned(),
            }),
            None => position,
        };
        let folders = match (&call.workspaces, &folder) {
            (None, Some(folder)) => vec![folder.clone()],
            (Some(named), Some(folder)) => self.packages(folder, named),
            (_, None) => Vec::new(),
        };
        for name in &call.names {
            if folders.is_empty() {
                self.package_script(text, program, call, name, None, position);
            }
            for folder in &folders {
                self.package_script(text, program, call, name, Some(folder), position);
            }
        }
    }

    /// One script of the package in `folder`.
    fn package_script(
        &mut self,
        text: &str,
        program: &str,
        call: &PackageScripts,
        name: &str,
        folder: Option<&String>,
        position: &Position,
    ) {
        let document = folder.and_then(|folder| self.manifest(folder));
        let script = |name: &str| {
            let scripts = document.as_ref()?.get("scripts")?;
            scripts.get(name)?.as_str().map(str::to_owned)
        };
        let Some(body) = script(name) else {
            // A program of a package, or a script that is not there: then it fails, unless
            // it is told not to.
            if !call.optional {
                return self.note(text, program, CheckScriptCommandKind::Tests(None), position);
            }
            let hidden = position.hidden(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: "--if-present".to_owned(),
            });
            let command = self.command(text, program, CheckScriptCommandKind::Tests(None), &hidden);
            match document.is_some() {
                true => self.absent.push(command),
                false => self.note(text, program, CheckScriptCommandKind::Tests(None), &hidden),
            }
            return;
        };
        let folder = folder.cloned().unwrap_or_default();
        let mut bodies = vec![(name.to_owned(), body)];
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
                bash: self.project.sh_is_bash,
                ..position.within(false)
            };
            self.called(place, |reader| reader.script(&body, &within));
        }
    }

    fn manifest(&self, folder: &str) -> Option<Value> {
        let text = self.text_of(folder, "package.json")?;
        serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
    }

    /// The folders of the packages in a workspace, those of these names or folders; none named: all.
    fn packages(&self, root: &str, named: &[String]) -> Vec<String> {
        let listed = |value: &Value| {
            let list = value
                .as_array()
                .or_else(|| value.get("packages")?.as_array())?;
            Some(
                list.iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        let manifest = self.manifest(root);
        let patterns = manifest
            .as_ref()
            .and_then(|manifest| listed(manifest.get("workspaces")?));
        let patterns = patterns.or_else(|| {
            let text = self.text_of(root, "pnpm-workspace.yaml")?;
            let lines = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("- "));
            Some(
                lines
                    .map(|line| line.trim().trim_matches(['"', '\'']).to_owned())
                    .collect(),
            )
        });
        let mut folders: Vec<String> = Vec::new();
        for pattern in patterns.unwrap_or_default() {
            let pattern = pattern.trim_end_matches('/');
            let above = pattern
                .strip_suffix("/**")
                .or_else(|| pattern.strip_suffix("/*"));
            match above.and_then(|above| joined(root, above)) {
                Some(above) => {
                    let inside = (self.project.folders)(&above);
                    folders.extend(inside.iter().map(|name| format!("{above}/{name}")));
                }
                None if !pattern.contains('*') => folders.extend(joined(root, pattern)),
                None => {}
            }
        }
        folders.truncate(MAX_PACKAGES);
        folders.retain(|folder| {
            let Some(manifest) = self.manifest(folder) else {
                return false;
            };
            let name = manifest.get("name").and_then(Value::as_str);
            named.is_empty()
                || named.iter().any(|one| {
                    Some(one.as_str()) == name || joined(root, one).as_deref() == Some(folder)
                })
        });
        folders
    }
}
