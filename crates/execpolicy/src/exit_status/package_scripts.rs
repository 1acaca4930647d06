//! Analyses scripts of a `package.json`, of one package or of those of a workspace.

use checkrein_core::exit_status::{CheckScriptCommandKind, ExitStatusMask, ExitStatusMaskKind};
use serde_json::Value;

use super::called_scripts::join_path_within_root;
use super::runner_calls::PackageScriptCall;
use super::{CommandStatusContext, ExitStatusAnalyzer, shorten_to_first_line};

/// Packages of a workspace that are read.
const MAX_PACKAGES: usize = 50;

impl ExitStatusAnalyzer<'_> {
    /// Analyses scripts of a `package.json`, or records the command itself where they cannot be
    /// read.
    pub(super) fn analyze_package_script_exit_statuses(
        &mut self,
        text: &str,
        program: &str,
        call: &PackageScriptCall,
        position: &CommandStatusContext,
    ) {
        let folder = match &call.folder {
            None => Some(position.folder.clone()),
            Some(folder) => join_path_within_root(&position.folder, folder),
        };
        let position = match call.passed_over {
            Some(option) => &position.with_status_hidden_by(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: option.to_owned(),
            }),
            None => position,
        };
        let folders = match (&call.workspaces, &folder) {
            (None, Some(folder)) => vec![folder.clone()],
            (Some(named), Some(folder)) => self.workspace_package_folders(folder, named),
            (_, None) => Vec::new(),
        };
        for name in &call.names {
            // Where no folder is known, the call itself is recorded.
            if folders.is_empty() {
                self.analyze_package_script(text, program, call, name, None, position);
            }
            for folder in &folders {
                self.analyze_package_script(text, program, call, name, Some(folder), position);
            }
        }
    }

    /// Analyses one script of the package in `folder`.
    fn analyze_package_script(
        &mut self,
        text: &str,
        program: &str,
        call: &PackageScriptCall,
        name: &str,
        folder: Option<&String>,
        position: &CommandStatusContext,
    ) {
        let document = folder.and_then(|folder| self.package_manifest(folder));
        let script = |name: &str| {
            let scripts = document.as_ref()?.get("scripts")?;
            scripts.get(name)?.as_str().map(str::to_owned)
        };
        let Some(body) = script(name) else {
            // It is a program of a package, or a script that does not exist: then the call fails,
            // unless an option says otherwise.
            if !call.optional {
                return self.record_check_script_command(
                    text,
                    program,
                    CheckScriptCommandKind::Tests(None),
                    position,
                );
            }
            let hidden = position.with_status_hidden_by(ExitStatusMask {
                form: ExitStatusMaskKind::Tool,
                text: "--if-present".to_owned(),
            });
            let command = self.new_check_script_command(
                text,
                program,
                CheckScriptCommandKind::Tests(None),
                &hidden,
            );
            // Without a manifest that can be read, the script may exist after all.
            match document.is_some() {
                true => self.absent.push(command),
                false => self.record_check_script_command(
                    text,
                    program,
                    CheckScriptCommandKind::Tests(None),
                    &hidden,
                ),
            }
            return;
        };
        let folder = folder.cloned().unwrap_or_default();
        let mut bodies = vec![(name.to_owned(), body)];
        // npm also runs `preNAME` and `postNAME`, in this order around the script.
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
            let file = join_path_within_root(&folder, "package.json").unwrap_or_default();
            let place = format!("{file}, script {}", shorten_to_first_line(&name));
            let within = CommandStatusContext {
                folder: folder.clone(),
                place: Some(place.clone()),
                bash: self.project.sh_is_bash,
                ..position.child_process_exit_status_context(false)
            };
            self.read_script_unless_recursive(place, |reader| {
                reader.analyze_script_exit_statuses(&body, &within)
            });
        }
    }

    fn package_manifest(&self, folder: &str) -> Option<Value> {
        let text = self.project_file_text(folder, "package.json")?;
        serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
    }

    /// Returns the folders of packages in a workspace: those with these names or folders, or all.
    fn workspace_package_folders(&self, root: &str, named: &[String]) -> Vec<String> {
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
        let manifest = self.package_manifest(root);
        let patterns = manifest
            .as_ref()
            .and_then(|manifest| listed(manifest.get("workspaces")?));
        // pnpm keeps the list in a file of its own, of which the list items are read.
        let patterns = patterns.or_else(|| {
            let text = self.project_file_text(root, "pnpm-workspace.yaml")?;
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
            match above.and_then(|above| join_path_within_root(root, above)) {
                Some(above) => {
                    let inside = (self.project.folders)(&above);
                    folders.extend(inside.iter().map(|name| format!("{above}/{name}")));
                }
                None if !pattern.contains('*') => {
                    folders.extend(join_path_within_root(root, pattern))
                }
                None => {}
            }
        }
        // The manifest of each of these folders is read.
        folders.truncate(MAX_PACKAGES);
        folders.retain(|folder| {
            let Some(manifest) = self.package_manifest(folder) else {
                return false;
            };
            let name = manifest.get("name").and_then(Value::as_str);
            named.is_empty()
                || named.iter().any(|one| {
                    Some(one.as_str()) == name
                        || join_path_within_root(root, one).as_deref() == Some(folder)
                })
        });
        folders
    }
}
