//! Collects what is read-only under `--confine`: state, config, rules, schemas, settings that hold
//! hooks, git's exclude list, and checkrein itself.

use std::io;
use std::path::{Path, PathBuf};

use checkrein_runtime::config::ConfigWithNamedFiles;
use checkrein_runtime::durable_file;

use super::placeholders::MissingPathStandIn;
use checkrein_verifiers::private_file::write_private_file;

use crate::guarded_files;
use crate::locate::{self, ProjectLocation};

/// One guarded path.
#[derive(Debug, Clone)]
pub(super) struct SandboxProtectedPath {
    pub(super) path: PathBuf,
    when_missing: MissingPathAction,
    /// Whether agents write into it. Such a folder only has to exist, for what is guarded in it.
    pub(super) is_writable: bool,
    /// Whether its parent folder is created as well, should that be missing.
    makes_parent: bool,
}

/// What to do if a guarded path is missing.
#[derive(Debug, Clone, Copy)]
enum MissingPathAction {
    /// Leave it missing.
    Leave,
    /// Put an empty folder there.
    Folder,
    /// Put a file with this text there.
    File(&'static str),
}

impl SandboxProtectedPath {
    fn new(path: PathBuf, missing: MissingPathAction) -> Self {
        Self {
            path,
            when_missing: missing,
            is_writable: false,
            makes_parent: false,
        }
    }

    /// Returns what stands there for the time of a run, should the path be missing.
    pub(super) fn sandbox_placeholder_for_missing_path(&self) -> Option<MissingPathStandIn> {
        let text = match self.when_missing {
            MissingPathAction::Leave => return None,
            MissingPathAction::Folder => None,
            MissingPathAction::File(text) => Some(text.to_owned()),
        };
        // Below a missing folder nothing is needed: the placeholder of that folder stands for it.
        let parent = self.path.parent()?;
        (parent.is_dir() || self.makes_parent).then(|| MissingPathStandIn {
            path: self.path.clone(),
            text,
        })
    }
}

/// Collects all guarded paths.
pub(super) fn collect_guarded_paths(
    located: &ProjectLocation,
    state: &Path,
) -> Vec<SandboxProtectedPath> {
    let mut found = vec![SandboxProtectedPath::new(
        state.to_owned(),
        MissingPathAction::Leave,
    )];
    let root = &located.place.root;
    // A repo without a config could be given one by the agent, so an empty file takes its place.
    let config = located
        .repo_config
        .clone()
        .unwrap_or_else(|| root.join(locate::CONFIG));
    found.push(SandboxProtectedPath::new(
        config,
        MissingPathAction::File(""),
    ));
    found.extend(
        config_named_files(located)
            .map(|named| SandboxProtectedPath::new(named, MissingPathAction::Leave)),
    );
    let own = located.person_config.as_deref().and_then(Path::parent);
    found.extend(
        own.map(|folder| SandboxProtectedPath::new(folder.to_owned(), MissingPathAction::Leave)),
    );

    // Agents may read settings from any of these: the folder in which they start, the tree's root,
    // the checkout's top.
    let here = std::env::current_dir().ok();
    for folder in here.iter().chain([root, &located.top]) {
        let agents = folder.join(".claude");
        // An existing `.claude` holds more than settings, so only the settings in it are guarded.
        if agents.is_dir() {
            found.extend(
                CLAUDE_CODE_SETTINGS
                    .map(|(name, text)| SandboxProtectedPath::new(agents.join(name), text)),
            );
        } else {
            found.push(SandboxProtectedPath::new(agents, MissingPathAction::Folder));
        }
        found.push(SandboxProtectedPath::new(
            folder.join(".codex"),
            MissingPathAction::Folder,
        ));
    }
    found.extend(protected_agent_home_paths(
        "CLAUDE_CONFIG_DIR",
        ".claude",
        &CLAUDE_CODE_SETTINGS,
    ));
    found.extend(protected_agent_home_paths(
        "CODEX_HOME",
        ".codex",
        &CODEX_SETTINGS,
    ));
    // Managed settings rank above all others and can switch hooks off.
    for managed in ["/etc/claude-code", "/etc/codex"] {
        found.push(SandboxProtectedPath::new(
            PathBuf::from(managed),
            MissingPathAction::Leave,
        ));
    }
    // A program that the agent could replace would judge the agent.
    if let Ok(ourselves) = std::env::current_exe() {
        found.push(SandboxProtectedPath::new(
            ourselves,
            MissingPathAction::Leave,
        ));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|one, other| one.path == other.path);
    found
}

/// Returns the rules and schemas that configs name.
fn config_named_files(located: &ProjectLocation) -> impl Iterator<Item = PathBuf> {
    let configs = [
        located.repo_config.as_deref(),
        located.person_config.as_deref(),
    ];
    let gathered = configs
        .into_iter()
        .flatten()
        .filter_map(guarded_files::load_config_and_named_files);
    let names = |gathered: ConfigWithNamedFiles| {
        let named: Vec<PathBuf> = gathered
            .rules_and_schema_files()
            .map(|named| named.name.clone())
            .collect();
        named
    };
    gathered.flat_map(names)
}

/// Settings in Claude Code's folder, of a repo or of a person.
const CLAUDE_CODE_SETTINGS: [(&str, MissingPathAction); 2] = [
    ("settings.json", MissingPathAction::File("{}\n")),
    ("settings.local.json", MissingPathAction::File("{}\n")),
];

/// Settings in a person's folder of Codex.
const CODEX_SETTINGS: [(&str, MissingPathAction); 3] = [
    ("config.toml", MissingPathAction::File("")),
    ("hooks.json", MissingPathAction::File("{}\n")),
    ("rules", MissingPathAction::Folder),
];

/// Returns the guards for a person's folder of an agent, which the agent creates if it is not
/// there.
fn protected_agent_home_paths(
    variable: &str,
    usual: &str,
    settings: &[(&str, MissingPathAction)],
) -> Vec<SandboxProtectedPath> {
    // A folder whose parent is missing too belongs to an agent that is not used here.
    let there = |folder: &PathBuf| folder.is_dir() || folder.parent().is_some_and(Path::is_dir);
    let Some(folder) = locate::agent_home_folder(variable, usual).filter(there) else {
        return Vec::new();
    };
    let mut found: Vec<SandboxProtectedPath> = settings
        .iter()
        .map(|(name, missing)| SandboxProtectedPath {
            makes_parent: true,
            ..SandboxProtectedPath::new(folder.join(name), *missing)
        })
        .collect();
    found.push(SandboxProtectedPath {
        is_writable: true,
        ..SandboxProtectedPath::new(folder, MissingPathAction::Folder)
    });
    found
}

/// Returns guarded paths that are reached through a symbolic link: only what a link points to can
/// be made read-only.
pub(super) fn symlinked_guarded_paths(
    guarded: &[SandboxProtectedPath],
) -> impl Iterator<Item = &Path> {
    let is_link = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|meta| meta.file_type().is_symlink())
    };
    guarded
        .iter()
        .map(|guard| guard.path.as_path())
        .filter(move |path| is_link(path))
}

/// Writes a copy of git's exclude list to which placeholders are added, so that they are not shown
/// as new files inside. Returns the copy and the place for it; `None` without a repo.
pub(super) fn write_git_exclude_with_placeholders(
    located: &ProjectLocation,
    lent: &[MissingPathStandIn],
    folder: &Path,
) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let Some(info) = locate::git_common_dir(&located.top).map(|git| git.join("info")) else {
        return Ok(None);
    };
    let Ok(place) = info.join("exclude").canonicalize() else {
        return Ok(None);
    };
    let Some(mut text) =
        durable_file::read_limited_text_file(&place, durable_file::MAX_CONFIG_BYTES)?
    else {
        return Ok(None);
    };
    for placeholder in lent {
        if let Ok(below) = placeholder.path.strip_prefix(&located.top) {
            text.push_str(&format!("\n/{}", below.display()));
        }
    }
    text.push('\n');
    let copy = folder.join("exclude");
    write_private_file(&copy, text.as_bytes())?;
    Ok(Some((copy, place)))
}
